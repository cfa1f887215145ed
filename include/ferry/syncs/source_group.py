"""The flow's positions as a consumer group on the source, so that tools that watch lag there see Ferry (KIP-656).

The positions that count are on the target; this is a copy, which Ferry never reads. It is written only when `ferry.publish.source.group`
names a group, because that needs Read on the group and on the topics at the source. All partitions are written each time, because the
broker forgets offsets of a group without members after offsets.retention.minutes.
"""

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import FerryError, GroupFailed
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import Head
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.ledger.topic_ids import created_again
from ferry.syncs.group_placing import has_members, refused_commit
from ferry.syncs.names import SyncName, not_enabled

METADATA = "written by Ferry: do not consume with this group"


def sync_source_group(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Commit the positions to the group. A group that has members or may not be written fails this sync, and no other."""
    flow = opened.flow
    group = flow.mirroring.publish_source_group
    if not group:
        return SyncOutcome(left_out=not_enabled(flow, SyncName.SOURCE_GROUP))
    topics = opened.source.admin.topics()
    wanted, skipped = published(opened.state_among(opened.target.admin.topics()).heads, topics)
    with opened.source.groups(to_write=True) as groups:
        found = groups.offsets([group], stable=False)[group]
        if isinstance(found, FerryError):
            raise found
        refusals = {} if dry_run or not wanted else groups.commit(group, wanted)
    if has_members(refusals):
        raise GroupFailed(f"group {group} has members: it must be Ferry's alone; stop them, or name another ferry.publish.source.group")
    failed = tuple(SyncFailure.of(_name(group, key), refused_commit(flow.source, key, code)) for key, code in refusals.items())
    before = {key: committed.offset for key, committed in found.items()}
    moved = {key: found.offset for key, found in wanted.items() if before.get(key) != found.offset and key not in refusals}
    changes = tuple(Change(_name(group, key), "write", f"{before.get(key, 'none')} -> {offset}") for key, offset in moved.items())
    notices = (f"group {group} on {flow.source.alias} is written by Ferry: nobody else may use it",)
    return SyncOutcome(changes, skipped, failed, notices, {"partitions": len(wanted)})


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


def _name(group: str, key: TopicPartition) -> str:
    return f"group {group} {key.topic}-{key.partition}"
