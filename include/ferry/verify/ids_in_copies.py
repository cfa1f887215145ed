"""Which ids of schemas the newest copied records hold, and which of them the target's registry does not know. Only reads."""

from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from ferry import clock
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import ClientRole
from ferry.errors import PartitionError, count_of
from ferry.handling.interface import Record
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.topic_ids import id_of
from ferry.schemas.inventory import unknown_ids
from ferry.schemas.registry import open_registries
from ferry.verify.log_reader import LogMoved, LogReader
from ferry.wire.batch import MalformedBatch
from ferry.wire.handled import decode_records
from ferry.wire.legacy import opened as records_of
from ferry.wire.ranges import Range
from ferry.wire.schema_ids import SchemaId, foreign_ids, ids_of

# Enough to see what producers write now, and one fetch or two of a partition.
NEWEST = 1_000
# A failover waits for this: of a flow with thousands of partitions it looks at some.
LOOK_SECONDS = 20.0


@dataclass
class IdsInCopies:
    """The first place of each id, and of each sign of a registry of another kind. `unknown`: by place, what the target cannot find."""

    ids: dict[SchemaId, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    looked: int = 0
    partitions: int = 0

    def note(self, record: Record) -> None:
        where = f"{record.topic}-{record.partition} offset {record.offset}"
        for number, place in ids_of(record):
            self.ids.setdefault(number, f"{where}, {place}")
        for kind in foreign_ids(record):
            self.foreign.setdefault(kind, where)

    @property
    def notices(self) -> tuple[str, ...]:
        others = [f"{place}: it looks like an id of {kind}, whose schemas no sync copies" for kind, place in self.foreign.items()]
        said = f"looked for ids of schemas in the newest records of {self.looked} of {count_of(self.partitions, 'remote partition')}"
        return *others, f"{said}: found {len(self.ids)}"


def ids_in_copies(opened: OpenFlow, newest: int = NEWEST, seconds: float = LOOK_SECONDS) -> IdsInCopies:
    """Look at `newest` offsets of each remote partition, for about `seconds`. FerryError if the target or its registry does not answer."""
    found, flow = IdsInCopies(), opened.flow
    _look(opened, found, newest, clock.monotonic() + seconds)
    with open_registries((flow.target,)) as (registry,):
        missing = unknown_ids(registry, dict(flow.schemas.contexts).values(), found.ids)
    found.unknown = {found.ids[one]: f"no schema has the {'id' if isinstance(one, int) else 'GUID'} {one} there" for one in missing}
    return found


def _look(opened: OpenFlow, found: IdsInCopies, newest: int, deadline: float) -> None:
    spans, ids = _spans(opened, newest)
    found.partitions = len(spans)

    async def look(key: TopicPartition, span: Range) -> None:
        reader = LogReader(there.connection, leaders, key, ids[key.topic], (span,))
        while not reader.done:
            reader.request()
            for header, view in await reader.receive():
                for record in decode_records(*records_of(header, view), *key) if len(view) else ():
                    found.note(record)

    with opened.target.connected(ClientRole.CONSUMER) as there:
        leaders = Leaders(there.connection, ids, ids)
        if spans:
            there.loop.run(leaders.refresh)
        for key, span in spans.items():
            if clock.monotonic() > deadline:
                return
            with suppress(PartitionError, LogMoved, MalformedBatch):
                there.loop.run(look, key, span)
                found.looked += 1


def _spans(opened: OpenFlow, newest: int) -> tuple[dict[TopicPartition, Range], dict[str, UUID]]:
    """The offsets to look at in each remote partition that holds some, and the ids of their topics."""
    target, is_heartbeats = opened.target.admin, opened.flow.is_heartbeats  # their keys begin like ids
    heads = [head for head in opened.state.heads.values() if not is_heartbeats(head.topic)]
    topics, remote = target.topics(), {TopicPartition(head.remote_topic, head.partition): head.remote_topic_id for head in heads}
    keys = sorted(key for key, topic_id in remote.items() if id_of(topics.get(key.topic)) == topic_id)
    starts, ends = target.earliest_offsets(keys)[0], target.end_offsets(keys)[0]
    spans = {key: (max(starts[key], ends[key] - newest), ends[key]) for key in keys if starts.get(key, 0) < ends.get(key, 0)}
    return spans, {key.topic: UUID(remote[key]) for key in spans}
