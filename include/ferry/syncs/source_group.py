"""The flow's positions as a consumer group on the source, so that tools that watch lag there see Ferry (KIP-656).

The positions that count are on the target; this is a copy, which Ferry never reads. It is written only when `ferry.publish.source.group`
names a group, because that needs Read on the group and on the topics at the source. All partitions are written each time, because the
broker forgets offsets of a group without members after offsets.retention.minutes.
"""

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.answers import OFFSET_COMMIT, Action
from ferry.clusters.consumer_groups import ConsumerGroups, GroupOffsets
from ferry.clusters.describe import TopicDescription
from ferry.clusters.group_model import CommittedOffset
from ferry.clusters.partitions import TopicPartition
from ferry.errors import FerryError, GroupFailed, NotAuthorized
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import Head
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.ledger.topic_ids import created_again
from ferry.syncs.context import SyncContext
from ferry.syncs.group_placing import has_members
from ferry.syncs.names import SyncName, not_enabled

NAME = SyncName.SOURCE_GROUP.value
METADATA = "written by Ferry: do not consume with this group"


def sync_source_group(context: SyncContext) -> SyncOutcome:
    """Commit the positions to the group. A group that has members or may not be written fails this sync, and no other."""
    flow, dry_run = context.flow, context.dry_run
    group = flow.mirroring.publish_source_group
    if not group:
        return SyncOutcome(NAME, left_out=not_enabled(flow, SyncName.SOURCE_GROUP))
    with ClusterAdmin(flow.source) as source:
        topics = source.topics()
    wanted, skipped = published(context.state_and_claims[0].heads, topics)
    with ConsumerGroups(flow.source, to_write=True) as groups:
        found = groups.offsets([group], stable=False)[group]
        if isinstance(found, FerryError):
            raise found
        failed = () if dry_run or not wanted else _write(groups, group, wanted)
    refused = {failure.what for failure in failed}
    before = {key: committed.offset for key, committed in found.items()}
    changes = tuple(
        Change(_name(group, key), "write", f"{before.get(key, 'none')} -> {committed.offset}")
        for key, committed in wanted.items()
        if before.get(key) != committed.offset and _name(group, key) not in refused
    )
    notices = (f"group {group} on {flow.source.alias} is written by Ferry: nobody else may use it",)
    return SyncOutcome(NAME, changes, skipped, failed, notices, {"partitions": len(wanted)})


def published(
    heads: dict[TopicPartition, Head], topics: dict[str, TopicDescription]
) -> tuple[dict[TopicPartition, CommittedOffset], tuple[Skipped, ...]]:
    """The offsets to commit (pure). Positions of topics that are gone or were created again are skipped."""
    wanted, skipped = {}, []
    for key, head in sorted(heads.items()):
        topic, partition = key
        today = topics.get(topic)
        if today is None or partition >= today.partitions:
            skipped.append(Skipped(f"{topic}-{partition}", "the source has no such partition"))
        elif created_again(head.source_topic_id, today.topic_id):
            skipped.append(Skipped(f"{topic}-{partition}", "the topic was deleted and created again since it was copied"))
        else:
            wanted[key] = CommittedOffset(head.position, metadata=METADATA)
    return wanted, tuple(skipped)


def _write(groups: ConsumerGroups, group: str, wanted: GroupOffsets) -> tuple[SyncFailure, ...]:
    refusals = groups.commit(group, wanted)
    if has_members(refusals):
        raise GroupFailed(f"group {group} has members: it must be Ferry's alone; stop them, or name another ferry.publish.source.group")
    return tuple(_failure(groups, group, key, code) for key, code in refusals.items())


def _failure(groups: ConsumerGroups, group: str, key: TopicPartition, code: int) -> SyncFailure:
    told = f"the source answers {OFFSET_COMMIT.told(code)}"
    if OFFSET_COMMIT.action(code) is Action.DENIED:
        right = groups.granting(OFFSET_COMMIT.right(code, topic=key.topic))
        return SyncFailure(_name(group, key), NotAuthorized.__name__, f"{told}; {right}")
    return SyncFailure(_name(group, key), GroupFailed.__name__, told)


def _name(group: str, key: TopicPartition) -> str:
    return f"group {group} {key.topic}-{key.partition}"
