"""The schema registry of the target holds what the source's holds, under the same ids, before records are copied.

Versions of all subjects are compared in each sync. The settings of a subject are read one by one, so each sync compares those of subjects
with new versions and of SETTINGS_EACH others, and the next sync goes on behind them. Modes that a killed sync has left are in the flow's
state, and this sync restores them, whatever else it does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ferry.clusters.logs.internal_producer import append_records
from ferry.errors import IdsNotKept, SchemasRefused
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import ImportMode, LevelsRead, NewId, encode_state
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.ledger.topics import ensure_internal_topics
from ferry.schemas.comparing import Comparison, compare
from ferry.schemas.contents import SchemaVersion, Subject, VersionKey
from ferry.schemas.importing import Import
from ferry.schemas.inventory import read_versions
from ferry.schemas.plan import IMPORT, LevelChange, VersionsPlan, plan_versions
from ferry.schemas.registry import open_registries

SETTINGS_EACH = 50


def sync_schemas(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Register on the target what it lacks. Errors as of schemas.registry; IdsNotKept if the target's registry gives other ids."""
    flow, state = opened.flow, opened.state
    recorded = {Subject.parse(name): entry.mode for name, entry in state.imports.items()}
    with open_registries((flow.source, flow.target)) as (source, target):
        found = compare(flow, source, target, recorded, lambda subjects: _next(subjects, state.levels_read))
        failed: tuple[SyncFailure, ...] = tuple(SyncFailure(what, SchemasRefused.__name__, why) for what, why in found.conflicts)
        if not dry_run:
            equal = found.plan.equal
            writing = Import(target, lambda modes: _write_down(opened, modes), lambda subjects: _forget(opened, subjects), recorded)
            if failed:
                writing.close()
            elif not found.is_equal or recorded:
                writing.carry_out(found)
                there = read_versions(target, frozenset(dict(flow.schemas.contexts).values()))
                left = plan_versions(found.here, there, found.images, rewritten=found.plan.equal is not None)
                failed, equal = _lacking(left), left.equal
            if equal and not found.conflicts:
                _map_ids(opened, found.plan, equal)
            _remember(opened, found)
        requests = source.requests + target.requests
    counts = {"subjects": len(found.plan.sources), "versions": len(found.plan.wanted), "requests": requests}
    changes = _changes(found, recorded)
    if failed:
        changes = tuple(replace(change, reason="only when nothing fails") for change in changes) if dry_run else ()
    return SyncOutcome(changes, _skipped(found), failed, found.notices, counts)


def _next(subjects: Sequence[Subject], after: str) -> Sequence[Subject]:
    """The next SETTINGS_EACH subjects, in a circle."""
    begin = next((index for index, subject in enumerate(subjects) if str(subject) > after), 0)
    return [*subjects[begin:], *subjects[:begin]][:SETTINGS_EACH]


def _remember(opened: OpenFlow, found: Comparison) -> None:
    """Keep where the next sync goes on, if this one has not compared the settings of all subjects."""
    if 0 < len(found.looked_at) < len(found.plan.sources):
        _append(opened, [encode_state(LevelsRead(str(found.looked_at[-1])))])


def _write_down(opened: OpenFlow, modes: Mapping[Subject, str]) -> None:
    _append(opened, [encode_state(ImportMode(str(subject), mode)) for subject, mode in sorted(modes.items())])


def _forget(opened: OpenFlow, subjects: Collection[Subject]) -> None:
    _append(opened, [(encode_state(ImportMode(str(subject), ""))[0], None) for subject in sorted(subjects)])


def _append(opened: OpenFlow, records: list[tuple[bytes, bytes]] | list[tuple[bytes, None]]) -> None:
    ensure_internal_topics(opened.flow, opened.target.admin)
    append_records(opened.target, {opened.flow.state_topic: records})
    opened.anew()


def _map_ids(opened: OpenFlow, plan: VersionsPlan, equal: Mapping[VersionKey, SchemaVersion]) -> None:
    """Keep what copies of records need to get the target's ids."""
    ((context, image),) = opened.flow.schemas.contexts
    found = dict[int, NewId]()
    for key, there in sorted(equal.items()):
        here = plan.wanted[key]
        found.setdefault(here.id, NewId(context, image, here.id, there.id, here.guid, there.guid))
    known = frozenset(opened.state.schema_ids)
    if new := [encode_state(entry) for entry in found.values() if entry not in known]:
        _append(opened, new)


def _lacking(left: VersionsPlan) -> tuple[SyncFailure, ...]:
    """What the target's registry does not show as it was written, although it has said so. `left`: as it is now."""
    named = [*left.conflicts, *((str(one.key), "it is not there after it was registered") for one in left.register)]
    named += [(str(one.key), "it is not deleted after it was deleted") for one in left.delete]
    return tuple(SyncFailure(what, IdsNotKept.__name__, why) for what, why in named)


def _changes(found: Comparison, recorded: Mapping[Subject, str]) -> tuple[Change, ...]:
    whose = "" if found.plan.equal is None else " of the source"
    changes = [Change(str(version.key), "register", f"id {version.id}{whose}") for version in found.plan.register]
    changes += [Change(str(version.key), "delete", "soft", "it is soft-deleted at the source") for version in found.plan.delete]
    changes += [Change(_named(change), "set", detail) for change in found.levels for detail in _details(change)]
    left = "a sync that was killed had opened it"
    changes += [Change(f"subject {subject}", "set", f"mode: {IMPORT} -> {mode or 'none'}", left) for subject, mode in recorded.items()]
    return tuple(changes)


def _named(change: LevelChange) -> str:
    return f"subject {change.subject}" if change.subject.name else f"context {change.subject.context}"


def _details(change: LevelChange) -> list[str]:
    found = []
    if change.config is not None:
        found.append(f"config: {change.before.config or 'none'} -> {change.config}")
    if change.mode is not None:
        found.append(f"mode: {change.before.mode or 'none'} -> {change.mode}")
    return found


def _skipped(found: Comparison) -> tuple[Skipped, ...]:
    left = [Skipped(what, why) for what, why in found.plan.skipped]
    left += [Skipped(str(key), "only the target has it: records there may still need it") for key in found.plan.surplus]
    return tuple(left)
