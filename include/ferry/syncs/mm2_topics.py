"""MirrorMaker 2's internal topics as Ferry keeps them: heartbeats, checkpoints, offset syncs.

Ferry creates them as MM2 does (MirrorUtils.createSinglePartitionCompactedTopic): one partition, compacted, no other config. Only the
replication factor may be smaller, as replication.py says. All records are in partition 0. Others write there too, so Ferry names a record
that it cannot read and leaves it alone. Ferry writes no tombstone and no other version, because either would stop MM2's readers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ferry.clusters.admin.describe import WantedTopic
from ferry.clusters.admin.replication import replicas_for, replicas_told, wait_for_leaders, with_key
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.config.mm2_topics import Mm2Topic
from ferry.errors import count_of
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.sync_outcome import Change

T = TypeVar("T")
Decode = Callable[["bytes | None", "bytes | None"], T]

PARTITION = 0
NAMED_RECORDS = 5  # at most this many records that cannot be read are named


@dataclass(frozen=True)
class TopicRecords(Generic[T]):
    """The records of such a topic that can be read, in log order, and a line for each of the others."""

    records: tuple[T, ...] = ()
    unreadable: tuple[str, ...] = ()

    def notices(self) -> tuple[str, ...]:
        """For people: the first unreadable records by name and offset, and how many more there are."""
        more = len(self.unreadable) - NAMED_RECORDS
        return (*self.unreadable[:NAMED_RECORDS], *((f"… and {count_of(more, 'more record')} that cannot be read",) if more > 0 else ()))


def ensure_mm2_topic(opened: OpenFlow, topic: Mm2Topic, *, dry_run: bool) -> tuple[Change, ...]:
    """Create `topic` where it is missing; what was (or would be) done.

    NotAuthorized when the user may not create it: a topic that the user may write to would be visible. TooFewBrokers for its replicas.
    """
    name, replicas = topic.name, topic.replicas
    admin = opened.side(topic.cluster).admin
    if admin.exists(name):
        return ()
    factor = replicas_for(replicas, admin, [name])
    detail = f"1 partition, replication factor {replicas_told(factor)}, cleanup.policy=compact"
    change = Change(f"topic {name} on {topic.cluster.alias}", "create", detail)
    if not dry_run:

        def rights(_: str) -> str:
            return "Create, Read, Write" if topic.read_back else "Create, Write"

        for problem in admin.create_topics([WantedTopic(name, 1, factor, {"cleanup.policy": "compact"}, rights)]).values():
            raise with_key(problem, replicas, admin)
        wait_for_leaders(admin, {name: 1}, rights)
    return (change,)


def read_mm2_topic(opened: OpenFlow, topic: Mm2Topic, decode: Decode[T]) -> TopicRecords[T]:
    """Everything that the topic holds now; nothing when it is missing."""
    records = opened.side(topic.cluster).reader().read(topic.name, only={PARTITION})
    return decoded(records, decode, place_of(topic.cluster, topic.name))


def decoded(records: Iterable[InternalRecord], decode: Decode[T], where: str) -> TopicRecords[T]:
    """The records that `decode` can read; it raises ValueError for others. `where`: as of place_of."""
    readable, unreadable = [], []
    for record in records:
        try:
            readable.append(decode(record.key, record.value))
        except ValueError as problem:
            unreadable.append(f"{where}: the record at {record.partition}:{record.offset} cannot be read and is left alone: {problem}")
    return TopicRecords(tuple(readable), tuple(unreadable))
