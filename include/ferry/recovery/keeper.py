"""Holds a flow's recovery while one process carries it out, and writes what the state topic says about it.

Written in transactions under an id of its own, `ferry-<flow>-recovery`, that the newest recovery of the flow holds: one that was stopped
and wakes up again is refused by the broker, and writes no further groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.copying.fencing import FencedWriter
from ferry.copying.lanes import run_transactional_id
from ferry.ledger.reading import refuse_newer_state
from ferry.ledger.recovery_entries import CutEnds, GroupTaken, RecoveryEntry, RecoveryRecord
from ferry.ledger.recovery_record import begun, current_record, cut_of, ended, read_recovery, stage_of
from ferry.ledger.stages import Event, Stage
from ferry.ledger.state import FlowState, encode_state
from ferry.ledger.topics import ensure_internal_topics

if TYPE_CHECKING:
    from ferry.config import Flow


def recovery_transactional_id(flow: str) -> str:
    """The id under which recoveries of a flow write."""
    return f"{run_transactional_id(flow).removesuffix('run')}recovery"


class RecoveryKeeper:
    """Holds the flow's recovery for this process, and writes its records; a context manager."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._topic = flow.state_topic
        self._writer = FencedWriter(flow, flow.position_group, recovery_transactional_id(flow.name), [self._topic])
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
