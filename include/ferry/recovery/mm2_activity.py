"""Is MirrorMaker 2 still at work? Its positions are out of date while it is.

Its workers are members of a Connect group on the target. On a shared Connect cluster that says nothing about one connector, and the group's
name is not known, so besides the connector's offsets and the remote topics are watched for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.consumer_groups import ConsumerGroups
from ferry.clusters.group_model import GroupDescription
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.partitions import TopicPartition
from ferry.errors import NotAuthorized, ReplicatorActive
from ferry.wire.connect_offsets import SourcePartition, decode_source_key

if TYPE_CHECKING:
    from ferry.config import Flow

# A replicator under load writes many times in this; one that is idle has members in its group, or nothing to write.
WATCH_SECONDS = 5.0
CONNECT = "connect"


def worker_group(flow: Flow) -> str:
    """The Connect group of MM2 in dedicated mode (MirrorMakerConfig.workerConfig)."""
    return f"{flow.source.alias}-mm2"


def refuse_workers(flow: Flow) -> tuple[str, ...]:
    """ReplicatorActive when MM2's own worker group has members; the other Connect groups of the target that have some."""
    with ConsumerGroups(flow.target) as groups:
        names = [listed.group for listed in groups.list() if listed.protocol_type == CONNECT]
        described = groups.describe([*names, worker_group(flow)])
    active = {name: entry for name, entry in described.items() if isinstance(entry, GroupDescription) and entry.active}
    workers = described[worker_group(flow)]
    if isinstance(workers, NotAuthorized):  # then nobody can say whether it runs
        raise workers
    own = active.pop(worker_group(flow), None)
    if own is not None:
        hosts = ", ".join(sorted({member.host.lstrip("/") for member in own.members})) or own.state
        raise ReplicatorActive(
            f"MirrorMaker 2 runs: {len(own.members)} members in Connect group {own.group} on cluster {flow.target.alias} ({hosts}); "
            f"stop every connect-mirror-maker process of {flow.name} (by SIGTERM, so that it writes its last offsets), then do this again. "
            "One that was killed stays in the group for 10 s"
        )
    return tuple(sorted(active))


def refuse_movement(flow: Flow, topic: str, ends: Mapping[int, int], mine: Collection[SourcePartition]) -> None:
    """ReplicatorActive when offsets of `mine` come into the offsets topic behind `ends`, or their remote topics grow."""
    policy = flow.policy
    # Under the identity policy producers of the target may write there too.
    topics = {policy.format_remote_topic(flow.source.alias, where.topic) for where in mine} if policy.renames else set()
    with ClusterAdmin(flow.target) as target:
        known = {name: entry.partitions for name, entry in target.topics().items() if name in topics}
        keys = [TopicPartition(name, number) for name, width in known.items() for number in range(width)]
        before, _ = target.end_offsets(keys, committed=False)
        time.sleep(WATCH_SECONDS)
        after, _ = target.end_offsets(keys, committed=False)
    grown = sorted({key.topic for key in before if after.get(key, before[key]) > before[key]})
    with InternalTopicReader(flow.target) as reader:
        written = [record for record in reader.read(topic, ends, complete=False) if decode_source_key(record.key) in mine]
    if written or grown:
        what = f"{len(written)} new offsets in {topic}" if written else f"new records in {', '.join(grown)}"
        raise ReplicatorActive(
            f"MirrorMaker 2 is still at work: {what} within {WATCH_SECONDS:.0f} s; stop its processes for {flow.name}, or the source "
            "connector on the Connect cluster that runs it, then do this again"
        )
