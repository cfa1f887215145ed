"""Holds the lease of a flow's recovery while one process carries it out, and writes its records into the state topic.

The records are written in transactions under the id `ferry-<flow>-recovery`, which belongs to the newest recovery of the flow. The broker
refuses an older process that was suspended and wakes up, so it writes no more groups.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ferry import clock
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.copying.fencing import FencedWriter
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import refuse_newer_state
from ferry.ledger.recovery_record import ABANDONED, Event, Stage, begun, current_record, ended, has_ended, read_recovery, stage_of
from ferry.ledger.state import CutEnds, GroupTaken, RecoveryEntry, encode_state
from ferry.ledger.topics import ensure_internal_topics
from ferry.recovery.moving import GroupOutcome, PlaceShown, move_groups, without_taken
from ferry.recovery.recovery_report import RecoveryPlan
from ferry.syncs.group_placing import Positions


class RecoveryKeeper:
    """The lease of the flow's recovery. `record`, `state`: what the state topic says, with what was written since."""

    def __init__(self, opened: OpenFlow, writer: FencedWriter) -> None:
        self._opened, self._topic = opened, opened.flow.state_topic
        self._writer = writer
        self.state = read_recovery(opened)  # after fencing, when no other process writes these records any more
        self.record = current_record(opened.flow, self.state)

    def begin(self, event: Event, plan: RecoveryPlan, confirmed_by: str, cut: Callable[[str], Iterable[CutEnds]]) -> None:
        """Record that groups begin to move. A recovery that began before goes on under its name.

        `cut`: called with the name, says where the target's topics end. It is called only when a recovery begins. So records that producers
        write from then on come after these ends, even if a try was killed or a topic is new.
        """
        before, name = stage_of(self.record), f"{plan.options.command} {plan.options.run_id}"
        record = begun(self.state, self.record, event, name, clock.time_ms())
        source_cluster = plan.source_cluster or record.source_cluster
        record = replace(record, run_id=plan.options.run_id, confirmed_by=confirmed_by, source_cluster=source_cluster)
        found = tuple(cut(name)) if before is Stage.REPLICATING else ()
        self._write([record, *found])
        self.record = record
        self.state = replace(self.state, cut={**self.state.cut, **{entry.topic: entry for entry in found}})

    def move(self, cluster: OpenCluster, positions: Positions, consent: Iterable[PlaceShown]) -> tuple[GroupOutcome, ...]:
        """Bring the groups of `cluster` to `positions`, as of `move_groups`, and record that they are written."""
        phase = self.record.phase
        outcomes = move_groups(cluster, positions, without_taken(consent, self.state.taken, phase), phase, self.take)
        self.record = replace(self.record, step="groups written", at=clock.time_ms())
        self._write([self.record])
        return outcomes

    def end(self, event: Event, step: str) -> None:
        record = ended(self.record, event, step, clock.time_ms())
        self._write([record])
        self.record = record

    def take(self, groups: Sequence[GroupTaken]) -> None:
        """Record that these groups are about to be written, or done. Superseded when a newer recovery of the flow has begun."""
        fresh = [entry for entry in groups if self.state.taken.get(entry.group) != entry]
        if not fresh:
            self._writer.confirm()
            return
        self._write(fresh)
        self.state = replace(self.state, taken={**self.state.taken, **{entry.group: entry for entry in fresh}})

    def _write(self, entries: Iterable[RecoveryEntry]) -> None:
        self._writer.write({TopicPartition(self._topic, 0): [encode_state(entry) for entry in entries]})
        self._opened.anew()


@contextmanager
def keep_recovery(opened: OpenFlow) -> Iterator[RecoveryKeeper]:
    """Take the lease of the flow's recovery, and hold it."""
    flow = opened.flow
    refuse_newer_state(opened)
    ensure_internal_topics(flow, opened.target.admin)
    with FencedWriter(opened, flow.transactional_id("recovery")) as writer:
        yield RecoveryKeeper(opened, writer)


def abandon(opened: OpenFlow, event: Event) -> str:
    """After a false alarm: record that groups stay where they are, and write nothing else. Returns the stage after `event`.

    RecoveryStopped when there is no such movement to abandon. A movement that was just abandoned stays abandoned.
    """
    with keep_recovery(opened) as keeper:
        if not has_ended(keeper.record, event, ABANDONED):
            keeper.end(event, ABANDONED)
        return keeper.record.stage
