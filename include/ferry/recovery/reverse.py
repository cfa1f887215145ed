"""The way back: the flow in the other direction, and where it begins.

Where remote topics have names of their own, the topics that applications write on the target after a failover may hold older records. Their
ends are kept when the failover is confirmed, and the reverse flow begins there, for topics that it has never copied; a topic that is newer
than the failover begins at 0, whatever the flow's start policy. Where names stay as they are, nothing has to be kept: the ledger says which
records had come from the source, and only the others go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.partitions import TopicPartition
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, NotAuthorized, RecoveryStopped
from ferry.ledger.reading import read_state
from ferry.ledger.recovery_entries import CutEnds
from ferry.ledger.recovery_record import current_record, read_recovery, stage_of
from ferry.ledger.stages import Stage
from ferry.recovery.positions import GivenPositions
from ferry.recovery.seeding import SeedOutcome, seed

if TYPE_CHECKING:
    from ferry.clusters.describe import TopicDescription
    from ferry.config import FerryConfig, Flow


def reverse_name(flow: Flow) -> str:
    """The name of the flow in the other direction."""
    return f"{flow.target.alias}->{flow.source.alias}"


def find_reverse(config: FerryConfig, flow: Flow) -> Flow | None:
    """The enabled flow in the other direction; None when the file has none."""
    return next((other for other in config.flows if other.name == reverse_name(flow)), None)


def lines_to_add(flow: Flow) -> tuple[str, ...]:
    """What the file lacks for the way back. The other side's policy is the file's, and so are its topics unless they are the flow's own."""
    name = reverse_name(flow)
    return (f"{name}.enabled = true", f"{name}.topics = {', '.join(flow.topics)}")


def require_reverse(flow: Flow, reverse: Flow | None) -> Flow:
    """ArgumentError naming the lines to add where there is no flow in the other direction."""
    if reverse is None:
        raise ArgumentError(
            f"there is no enabled flow {reverse_name(flow)}, which the way back needs; add: {'; '.join(lines_to_add(flow))}"
        )
    return reverse


def refuse_other_way(flow: Flow) -> tuple[str, ...]:
    """RecoveryStopped when groups came here by the flow in the other direction: a failback brings them home. Both clusters must answer.

    What people should know where that cannot be read.
    """
    back = replace(flow, name=reverse_name(flow), source=flow.target, target=flow.source)
    try:
        record = current_record(back, read_recovery(back, settled=False))
    except NotAuthorized as problem:
        return (f"whether {back.name} is failed over cannot be seen: {problem}",)
    if stage_of(record) is not Stage.REPLICATING:
        raise RecoveryStopped(f"{back.name} is {record.stage}: come back with ferry failback --flow '{back.name}', or --abandon that first")
    return ()


def cut_ends(flow: Flow, reverse: Flow | None, recovery: str) -> tuple[CutEnds, ...]:
    """Last stable offsets of the target's topics that the reverse flow gives names of their own, now."""
    back = reverse or replace(flow, name=reverse_name(flow), source=flow.target, target=flow.source)
    with ClusterAdmin(flow.target) as target:
        topics = target.topics()
        names = _renamed(back, topics)
        keys = [TopicPartition(name, number) for name in names for number in range(topics[name].partitions)]
        ends, problems = target.end_offsets(keys)
    # A partition without a leader: begun at 0, at worst records of before come along.
    return tuple(
        CutEnds(
            name,
            recovery,
            tuple(0 if key in problems else ends.get(key, 0) for key in (TopicPartition(name, n) for n in range(topics[name].partitions))),
            topics[name].topic_id or "",
        )
        for name in names
    )


def start_positions(reverse: Flow, cut: Mapping[str, CutEnds]) -> dict[tuple[str, int], int]:
    """Where partitions begin that the reverse flow has never copied. Both clusters must answer."""
    with ClusterAdmin(reverse.source) as source, ClusterAdmin(reverse.target) as target:
        topics = source.topics()
        state, _ = read_state(reverse, target.topics(), settled=False)
    found = {}
    for name in _renamed(reverse, topics):
        for number in range(topics[name].partitions):
            if (name, number) not in state.heads:
                found[name, number] = start_of(cut.get(name), topics[name].topic_id, number)
    return found


def start_of(cut: CutEnds | None, topic_id: str | None, partition: int) -> int:
    """Where a partition begins: where it ended then, and at 0 where it is newer than the failover, or its topic is (pure)."""
    if cut is None or partition >= len(cut.ends):
        return 0
    created_again = topic_id is not None and cut.topic_id not in {"", topic_id}
    return 0 if created_again else cut.ends[partition]


def seed_reverse(reverse: Flow, positions: Mapping[tuple[str, int], int], run_id: str, recovery: str) -> SeedOutcome | None:
    """Write them down as the reverse flow's seeds; None where there is nothing to say. What stands there already is left alone."""
    if not positions:
        return None
    given = GivenPositions(f"{recovery}: only what was produced since goes back", positions)
    return seed(reverse, RunRequest(reverse.name, run_id), given)


def _renamed(flow: Flow, topics: Mapping[str, TopicDescription]) -> list[str]:
    policy = flow.policy
    selected: Iterable[tuple[str, str]] = flow.select_topics(topics).selected if flow.copies else ()
    return sorted(topic for topic, remote in selected if topic != remote and not policy.is_heartbeats_topic(topic))
