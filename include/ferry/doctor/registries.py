"""Findings about the schema registries of a flow: reach, login, modes, and what no sync copies. It asks, and writes nothing."""

from collections.abc import Iterator

from ferry.config import Flow
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.errors import FerryError, RegistryLoginRefused, count_of
from ferry.schemas.inventory import read_contexts, sets_levels, subject_names
from ferry.schemas.registry import SchemaRegistry, open_registries

# Where a registry lists what is not copied, if it has such parts.
_NOT_COPIED = {"/exporters": ("exporter", "exporters"), "/dek-registry/v1/keks": ("key encryption key", "key encryption keys")}


def registry_findings(flow: Flow) -> Iterator[Finding]:
    """The findings about both registries; nothing if the flow has none."""
    sides = [side for side in (flow.source, flow.target) if side.has_schema_registry]
    if len(sides) == 1:
        other = flow.target if sides[0] is flow.source else flow.source
        fix = f"set {other.alias}.schema.registry.url, or remove that of {sides[0].alias}"
        yield warning(f"flow {flow.name}", "schema registry", f"only {sides[0].alias} has one: no schemas are copied", fix)
    for side in sides:
        where = f"schema registry {side.alias}"
        try:
            with open_registries((side,)) as (registry,):
                yield from _of_registry(where, registry, target=side is flow.target)
        except FerryError as problem:
            yield failure(where, "answers", str(problem), problem.next_step, problem.exit_code)


def _of_registry(where: str, registry: SchemaRegistry, *, target: bool) -> Iterator[Finding]:
    next(subject_names(registry), None)
    yield ok(
        where, "answers", f"{registry.login.where} lets {registry.login.user} read; contexts: {', '.join(sorted(read_contexts(registry)))}"
    )
    if not sets_levels(registry):
        what = "it gives levels and modes to subjects that have none, as Apicurio does"
        fix = "choose a registry that keeps ids, or set sync.schemas.rewrite.ids.topics: the first sync finds out before records are copied"
        yield warning(where, "levels and modes", what, fix if target else "set the levels on the target by hand: Ferry copies none")
    mode = str((registry.find("/mode") or {}).get("mode") or "not known")
    if target and mode not in {"READWRITE", "IMPORT"}:
        yield failure(where, "mode", f"the registry is in the mode {mode}", "set it to READWRITE: Ferry opens subjects, not the registry")
    else:
        yield ok(where, "mode", mode)
    for path, names in _NOT_COPIED.items():
        try:
            found = registry.find(path)
        except RegistryLoginRefused:
            yield warning(where, "not copied", f"{names[1]} cannot be listed by this user", "look yourself: Ferry copies none")
            continue
        if isinstance(found, list) and found:
            yield warning(
                where, "not copied", count_of(len(found), *names), "create them on the target's registry by hand, if it needs them"
            )
