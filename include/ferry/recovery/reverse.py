"""The flow in the other direction: where it begins, and whether its target is still the source that was copied from.

If remote topics have other names, the topics that applications write on the target after a failover may hold older records. Ferry records
their ends when the failover is confirmed. The reverse flow begins there for topics that it has never copied. A topic that is newer than the
failover begins at 0, for any start policy of the flow. If topics keep their names, no ends are needed: the ledger says which records came
from the source, and only the others go back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import FerryConfig, Flow
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, ClusterUnreachable, NotAuthorized, RecoveryStopped, some_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import Stage, current_record, cut_of, read_recovery, stage_of
from ferry.ledger.state import CutEnds, FlowState, RecoveryRecord
from ferry.ledger.topic_ids import created_again
from ferry.migration.positions import GivenPositions
from ferry.migration.seeding import seed


def find_reverse(config: FerryConfig, flow: Flow) -> Flow | None:
    """The enabled flow in the other direction; None when the file has none."""
    return next((other for other in config.flows if other.name == flow.reverse_name), None)


def lines_to_add(flow: Flow) -> tuple[str, ...]:
    """The lines that the config lacks for the flow in the other direction; it gets the topics of this flow."""
    name = flow.reverse_name
    return (f"{name}.enabled = true", f"{name}.topics = {', '.join(flow.topics)}")


def require_reverse(flow: Flow, reverse: OpenFlow | None) -> OpenFlow:
    """ArgumentError with the lines to add if there is no flow in the other direction."""
    if reverse is None:
        raise ArgumentError(f"there is no enabled flow {flow.reverse_name}, which the way back needs; add: {'; '.join(lines_to_add(flow))}")
    return reverse


def refuse_other_way(opened: OpenFlow, reverse: OpenFlow | None) -> tuple[str, ...]:
    """RecoveryStopped when the flow in the other direction has moved groups here, so that a failback must move them back.

    Both clusters must answer. Returns a notice where this may not be read.
    """
    name = opened.flow.reverse_name
    asked = reverse if reverse is not None and reverse.target is opened.source else opened.back(_back(opened.flow))
    try:
        record = current_record(asked.flow, read_recovery(asked, stable=False))
    except NotAuthorized as problem:
        return (f"whether {name} is failed over cannot be seen: {problem}",)
    if stage_of(record) is not Stage.REPLICATING:
        raise RecoveryStopped(f"{name} is {record.stage}: come back with ferry failback --flow '{name}', or --abandon that first")
    return ()


def _back(flow: Flow) -> Flow:
    """The flow in the other direction, whether it is configured or not."""
    return replace(flow.opposite(), name=flow.reverse_name)


def cut_ends(opened: OpenFlow, reverse: OpenFlow | None, recovery: str) -> tuple[CutEnds, ...]:
    """The current last stable offsets of the target's topics that the reverse flow renames."""
    back, target = reverse.flow if reverse else _back(opened.flow), opened.target.admin
    topics = target.topics()
    keys = {name: [TopicPartition(name, number) for number in range(topics[name].partitions)] for name in _renamed(back, topics)}
    ends, _ = target.end_offsets(key for found in keys.values() for key in found)
    # A partition without a leader counts as ending at 0: at worst, the reverse flow copies older records too.
    return tuple(
        CutEnds(name, recovery, tuple(ends.get(key, 0) for key in found), topics[name].topic_id or "") for name, found in keys.items()
    )


def start_positions(reverse: OpenFlow, state: FlowState, record: RecoveryRecord) -> dict[TopicPartition, int]:
    """Where partitions begin that the reverse flow has never copied. Both clusters must answer. `state`, `record`: of the flow itself."""
    cut = cut_of(state, record)
    topics, heads = reverse.source.admin.topics(), reverse.state.heads
    keys = [TopicPartition(name, number) for name in _renamed(reverse.flow, topics) for number in range(topics[name].partitions)]
    return {key: start_of(cut.get(key.topic), topics[key.topic].topic_id, key.partition) for key in keys if key not in heads}


def start_of(cut: CutEnds | None, topic_id: str | None, partition: int) -> int:
    """Where a partition begins (pure): where it ended at the failover, or 0 if the partition or its topic is newer."""
    if cut is None or partition >= len(cut.ends):
        return 0
    return 0 if created_again(cut.topic_id, topic_id) else cut.ends[partition]


def seed_reverse(reverse: OpenFlow, state: FlowState, record: RecoveryRecord, run_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write `start_positions` as seeds of the reverse flow; what was written, and what failed. Seeds that exist already are left alone."""
    reverse.anew()
    positions = start_positions(reverse, state, record)
    if not positions:
        return (), ()
    given = GivenPositions(f"{record.recovery}: only what was produced since goes back", positions)
    name = reverse.flow.name
    outcome = seed(reverse, RunRequest(name, run_id), given)
    told = tuple(f"{name}: {entry.topic}-{entry.partition} begins at {entry.position}" for entry in outcome.seeds)
    return told, tuple(f"{name}: {failure}" for failure in outcome.failed)


def _renamed(flow: Flow, topics: Mapping[str, TopicDescription]) -> list[str]:
    is_heartbeats = flow.is_heartbeats
    selected: Iterable[tuple[str, str]] = flow.topic_rules.select(topics).selected if flow.copies else ()
    return sorted(topic for topic, remote in selected if topic != remote and not is_heartbeats(topic))


def refuse_another_source(opened: OpenFlow, record: RecoveryRecord, identity: str, *, rebuilt: bool) -> tuple[str, ...]:
    """Find what has changed at the source since it was copied, in its cluster id, topic ids and log ends; the changes, as texts for people.

    RecoveryStopped for any change, unless the source was `rebuilt`. ClusterUnreachable when a log end is not known.
    """
    flow, source = opened.flow, opened.source.admin
    alias, found = flow.source.alias, []
    if record.source_cluster and record.source_cluster != identity:
        found.append(f"its cluster id was {record.source_cluster} and is {identity}")
    is_heartbeats = flow.is_heartbeats
    heads = [head for _, head in sorted(opened.state.heads.items()) if not is_heartbeats(head.topic)]
    topics = source.topics()
    known = [head for head in heads if head.topic in topics and head.partition < topics[head.topic].partitions]
    ends, problems = source.end_offsets((head.key for head in known), committed=False)
    for (topic, partition), problem in problems.items():  # after a restart, partitions have no leader for a while
        raise ClusterUnreachable(f"cluster {alias}: {topic}-{partition}: {problem}")
    differing = set()
    for head in heads:
        today = topics.get(head.topic)
        if today is None:
            differing.add(f"{alias} has no topic {head.topic}")
        elif created_again(head.source_topic_id, today.topic_id):
            differing.add(f"topic {head.topic} had id {head.source_topic_id} and has {today.topic_id}")
        elif (end := ends.get(head.key, 0)) < head.position:
            differing.add(f"{head.topic}-{head.partition} ends at {end}, and was copied up to {head.position}")
    found += sorted(differing)
    if found and not rebuilt:
        raise RecoveryStopped(f"{alias} has changed since it was copied: {some_of(found, between='; ')}; {_what_then(flow)}")
    return tuple(found)


def _what_then(flow: Flow) -> str:
    again = "if it was rebuilt, run this again with --rebuilt --tail leave"
    if flow.policy.renames:
        return (
            f"{again}: what was produced on the target comes along under its own names, but what had come from {flow.source.alias} does "
            "not go back under this replication policy; copy that with a file of its own first"
        )
    return (
        f"{again}: everything that the target holds goes back; set {flow.name}.ferry.on.recreate=restart and "
        f"{flow.reverse_name}.ferry.on.target.recreate=restart for it, so that both flows go on with the new topics"
    )
