"""Reading and writing what the state topic says about a failover.

Written in transactions under an id of its own, `ferry-<flow>-recovery`, that the newest recovery of the flow holds: one that was stopped
and wakes up again is refused by the broker, and writes no further groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.copying.fencing import FencedWriter
from ferry.copying.formats import place_of
from ferry.copying.lanes import run_transactional_id
from ferry.copying.recovery_entries import KINDS, CutEnds, GroupTaken, RecoveryEntry, RecoveryRecord
from ferry.copying.state import FlowState, encode_state, fold_state
from ferry.copying.survey import refuse_newer_state
from ferry.errors import RecoveryStopped
from ferry.mirroring.internal_topics import ensure_internal_topics
from ferry.policy.naming import position_group, state_topic
from ferry.recovery.stages import TRANSITIONS, Event, Stage, advance

if TYPE_CHECKING:
    from ferry.config import Flow

# The last step of a record whose movement came to its end.
DONE = "done"
_KEYS = tuple(f'{{"{kind}"'.encode() for kind in sorted(KINDS))


def recovery_transactional_id(flow: str) -> str:
    """The id under which recoveries of a flow write."""
    return f"{run_transactional_id(flow).removesuffix('run')}recovery"


def read_recovery(flow: Flow, *, settled: bool = True) -> FlowState:
    """What the state topic says about failovers alone. `settled`: wait for what is being committed. NewerFormat as for any state."""
    topic = state_topic(flow.source.alias)
    with InternalTopicReader(flow.target) as reader:
        records = [(found.key, found.value) for found in reader.read(topic, complete=settled) if found.key.startswith(_KEYS)]
    return fold_state(records, place_of(flow.target, topic))


def current_record(flow: Flow, state: FlowState) -> RecoveryRecord:
    """The flow's record; one that says that it replicates where there is none."""
    return state.recovery or RecoveryRecord(flow.name, "", "", Stage.REPLICATING.value, "", 0, 0)


def stage_of(record: RecoveryRecord) -> Stage:
    """The record's stage. ValueError never: a stage that is not known counts as the most careful one."""
    return Stage(record.stage) if record.stage in set(Stage) else Stage.FAILING_OVER


def cut_of(state: FlowState, record: RecoveryRecord) -> dict[str, CutEnds]:
    """What was kept for this recovery, by topic."""
    return {topic: entry for topic, entry in state.cut.items() if entry.recovery == record.recovery}


def done_groups(state: FlowState, record: RecoveryRecord) -> frozenset[str]:
    """Groups that this movement need not touch again: they may have moved on since."""
    return frozenset(entry.group for entry in state.taken.values() if entry.done and entry.phase == record.phase)


def not_home(state: FlowState, record: RecoveryRecord, groups: Collection[str]) -> list[str]:
    """Those of `groups` that the failover or cut-over moved, and that a failback has not (pure)."""
    if record.phase == record.recovery:
        return []
    return sorted(entry.group for entry in state.taken.values() if entry.phase == record.recovery and entry.group in groups)


def begun(state: FlowState, record: RecoveryRecord, event: Event, name: str, now: int) -> RecoveryRecord:
    """The flow's record once groups begin to move, under `name` where that is a new movement; `now` in ms (pure).

    RecoveryStopped where a movement of that name was abandoned or came to its end: groups that are done under it have moved on since.
    """
    before = stage_of(record)
    stage = advance(record.flow, before, event)
    fresh = before is Stage.REPLICATING
    turns = stage is Stage.FAILING_BACK and before is not stage
    if (fresh or turns) and name in _names_used(state, record):
        raise RecoveryStopped(f"{name} was abandoned, or has ended: what was confirmed for it holds no longer; begin a new one")
    recovery = name if fresh else record.recovery
    phase = name if fresh or turns else record.phase
    since = now if fresh else record.since
    return replace(record, recovery=recovery, phase=phase, stage=stage.value, step="confirmed", at=now, since=since)


def ended(record: RecoveryRecord, event: Event, step: str, now: int) -> RecoveryRecord:
    """The flow's record behind the last step, or once it is abandoned (pure). Behind an abandoned failback the failover counts again."""
    stage = advance(record.flow, stage_of(record), event)
    phase = record.recovery if stage is Stage.FAILED_OVER else record.phase
    return replace(record, phase=phase, stage=stage.value, step=step, at=now)


def ended_by(record: RecoveryRecord, event: Event, run_id: str) -> bool:
    """Whether this run has written `event`, the end of a movement, already (pure)."""
    behind = {stage for (_, known), stage in TRANSITIONS.items() if known is event}
    return record.run_id == run_id and record.step == DONE and stage_of(record) in behind


def _names_used(state: FlowState, record: RecoveryRecord) -> set[str]:
    kept = (*(entry.phase for entry in state.taken.values()), *(entry.recovery for entry in state.cut.values()))
    return {record.recovery, record.phase, *kept}


class RecoveryKeeper:
    """Holds the flow's recovery for this process, and writes its records; a context manager."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._topic = state_topic(flow.source.alias)
        self._writer = FencedWriter(flow, position_group(flow.source.alias), recovery_transactional_id(flow.name), [self._topic])
        self.record = RecoveryRecord(flow.name, "", "", Stage.REPLICATING.value, "", 0, 0)
        self.state = FlowState()

    def __enter__(self) -> RecoveryKeeper:
        refuse_newer_state(self._flow)
        with ClusterAdmin(self._flow.target) as target:
            ensure_internal_topics(self._flow, target)
        self._writer.__enter__()
        try:  # behind the fence: nobody else moves it any more
            self.state = read_recovery(self._flow)
            self.record = current_record(self._flow, self.state)
        except BaseException:
            self._writer.__exit__()
            raise
        return self

    def __exit__(self, *details: object) -> None:
        self._writer.__exit__(*details)

    def begin(
        self, event: Event, *, name: str, run_id: str, confirmed_by: str, source_cluster: str, cut: Callable[[str], Iterable[CutEnds]]
    ) -> RecoveryRecord:
        """The stage in which groups are moved. A recovery that was begun before goes on under its name.

        `cut` says where the target's topics end. It is asked when a recovery begins, and never again: what producers write from then on is
        behind it, also where a try was killed or a topic is new.
        """
        before = stage_of(self.record)
        record = begun(self.state, self.record, event, name, _now())
        source_cluster = source_cluster or record.source_cluster
        record = replace(record, run_id=run_id, confirmed_by=confirmed_by, source_cluster=source_cluster)
        found = tuple(cut(name)) if before is Stage.REPLICATING else ()
        self._write([record, *found])
        self.record = record
        self.state = replace(self.state, cut={**self.state.cut, **{entry.topic: entry for entry in found}})
        return record

    def note(self, step: str) -> None:
        """A step is finished."""
        self.record = replace(self.record, step=step, at=_now())
        self._write([self.record])

    def end(self, event: Event, step: str) -> None:
        """The last step is finished."""
        record = ended(self.record, event, step, _now())
        self._write([record])
        self.record = record

    def take(self, groups: Sequence[GroupTaken]) -> None:
        """Say that these groups are about to be written, or done. Superseded when a newer recovery of the flow has begun."""
        fresh = [entry for entry in groups if self.state.taken.get(entry.group) != entry]
        if not fresh:
            self._writer.confirm()
            return
        self._write(fresh)
        self.state = replace(self.state, taken={**self.state.taken, **{entry.group: entry for entry in fresh}})

    @property
    def cut(self) -> dict[str, CutEnds]:
        """Where the target's topics ended when this recovery began; empty until that is kept."""
        return cut_of(self.state, self.record)

    def _write(self, entries: Iterable[RecoveryEntry]) -> None:
        self._writer.write({(self._topic, 0): [encode_state(entry) for entry in entries]})


def _now() -> int:
    return time.time_ns() // 1_000_000
