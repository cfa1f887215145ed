"""Whether the source that is back is the one that went away: its cluster id, its topics' ids, the ends of its logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.partitions import TopicPartition
from ferry.errors import ClusterUnreachable, RecoveryStopped
from ferry.ledger.reading import read_state
from ferry.ledger.recovery_entries import RecoveryRecord

if TYPE_CHECKING:
    from ferry.config import Flow

NAMED = 5


def refuse_another_source(flow: Flow, record: RecoveryRecord, identity: str, *, rebuilt: bool) -> tuple[str, ...]:
    """What is different, for people. RecoveryStopped unless somebody said that it was `rebuilt`."""
    found = differences(flow, record, identity)
    if found and not rebuilt:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise RecoveryStopped(f"{flow.source.alias} is not what it was: {'; '.join(found[:NAMED])}{more}; {_what_then(flow)}")
    return found


def differences(flow: Flow, record: RecoveryRecord, identity: str) -> tuple[str, ...]:
    """In which way the source is another one than what was copied from. ClusterUnreachable when it does not tell all of it."""
    alias = flow.source.alias
    found = []
    if record.source_cluster and record.source_cluster != identity:
        found.append(f"its cluster id was {record.source_cluster} and is {identity}")
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        topics = source.topics()
        state, _ = read_state(flow, target.topics(), settled=False)
        policy = flow.policy
        heads = [head for _, head in sorted(state.heads.items()) if not policy.is_heartbeats_topic(head.topic)]
        ends, problems = source.end_offsets(
            [
                TopicPartition(head.topic, head.partition)
                for head in heads
                if head.topic in topics and head.partition < topics[head.topic].partitions
            ],
            committed=False,
        )
    for (topic, partition), problem in problems.items():  # a cluster that comes back has partitions without a leader for a while
        raise ClusterUnreachable(f"cluster {alias}: {topic}-{partition}: {problem}")
    told = set()
    for head in heads:
        today = topics.get(head.topic)
        if today is None:
            told.add(f"{alias} has no topic {head.topic}")
        elif today.topic_id is not None and today.topic_id != head.source_topic_id:
            told.add(f"topic {head.topic} had id {head.source_topic_id} and has {today.topic_id}")
        elif ends.get(TopicPartition(head.topic, head.partition), 0) < head.position:
            end = ends.get(TopicPartition(head.topic, head.partition), 0)
            told.add(f"{head.topic}-{head.partition} ends at {end}, and was copied up to {head.position}")
    return (*found, *sorted(told))


def _what_then(flow: Flow) -> str:
    again = "if it was rebuilt, run this again with --rebuilt --tail leave"
    if flow.policy.renames:
        return (
            f"{again}: what was produced on the target comes along under its own names, but what had come from {flow.source.alias} does "
            "not go back under this replication policy; copy that with a file of its own first"
        )
    back = f"{flow.target.alias}->{flow.source.alias}"
    return (
        f"{again}: everything that the target holds goes back; set {flow.name}.ferry.on.recreate=restart and "
        f"{back}.ferry.on.target.recreate=restart for it, so that both flows go on with the new topics"
    )
