"""Compares the schema registries of a flow, and names each difference with what to do about it. Only reads."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from ferry.config import Flow
from ferry.errors import CopiesDiffer, ExitCode, SchemasRefused, count_of
from ferry.schemas.comparing import Comparison, compare
from ferry.schemas.registry import open_registries
from ferry.verify.ids_in_copies import IdsInCopies


@dataclass(frozen=True)
class SchemaDifference:
    what: str
    problem: str
    next_step: str


@dataclass(frozen=True)
class SchemasReport:
    """`not_compared`: what no sync copies, and why."""

    flow: str
    subjects: int
    versions: int
    differences: tuple[SchemaDifference, ...]
    not_compared: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        return CopiesDiffer.exit_code if self.differences else ExitCode.DONE

    def document(self) -> dict[str, Any]:
        return {**asdict(self), **{name: list(asdict(self)[name]) for name in ("differences", "not_compared", "notices")}}

    def lines(self) -> list[str]:
        told = [f"{one.what}: {one.problem}; next: {one.next_step}" for one in self.differences]
        what = f"{count_of(self.versions, 'version')} of {count_of(self.subjects, 'subject')}"
        return [*told, *self.not_compared, *self.notices, f"{what}: {count_of(len(told), 'difference') if told else 'equal'}"]


def with_ids(report: SchemasReport, found: IdsInCopies) -> SchemasReport:
    """The report, with what copied records say (pure)."""
    step = "register the schema there: ferry sync schemas, or by hand if the source does not have it either; or leave the topic out"
    unknown = tuple(SchemaDifference(place, problem, step) for place, problem in found.unknown.items())
    return replace(report, differences=report.differences + unknown, notices=report.notices + found.notices)


def verify_schemas(flow: Flow) -> SchemasReport:
    """Compare contents, ids, versions, deletions, and the settings of all subjects. Errors as of schemas.registry."""
    with open_registries((flow.source, flow.target)) as (source, target):
        return report_of(flow, compare(flow, source, target))


def report_of(flow: Flow, found: Comparison) -> SchemasReport:
    """The report of a comparison (pure)."""
    sync, plan = flow.command("sync") + " schemas", found.plan
    differences = [SchemaDifference(what, why, SchemasRefused.next_step) for what, why in found.conflicts]
    named = {what for what, _ in found.conflicts}
    writable = [(one.key, "it is not on the target") for one in plan.register]
    writable += [(one.key, "it is soft-deleted at the source only") for one in plan.delete]
    differences += [SchemaDifference(str(key), why, sync) for key, why in writable if str(key) not in named]
    gone = "nothing if records there need it; otherwise delete it by hand"
    differences += [SchemaDifference(str(key), "only the target has it", gone) for key in plan.surplus]
    for change in found.levels:
        differs = [name for name, value in (("config", change.config), ("mode", change.mode)) if value is not None]
        problem = f"{' and '.join(differs)} differ" + ("s" if len(differs) == 1 else "")
        differences.append(SchemaDifference(f"subject {change.subject}", problem, sync))
    left = tuple(f"{what}: {why}" for what, why in plan.skipped)
    return SchemasReport(flow.name, len(plan.sources), len(plan.wanted), tuple(differences), left, found.notices)
