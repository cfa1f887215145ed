"""Where MirrorMaker 2 stopped, from Kafka Connect's offsets topic on the target.

Only committed records count. With exactly-once MM2 writes its offsets in the transactions of its records, so that both agree; without, its
last offsets may lie behind what it copied, and that is copied again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.clusters.internal_reader import InternalRecord, InternalTopicReader
from ferry.errors import ArgumentError, UnreadableRecord
from ferry.ledger.run_report import Skipped
from ferry.recovery.mm2_activity import refuse_movement, refuse_workers
from ferry.recovery.positions import GivenPositions
from ferry.wire.connect_offsets import SourcePartition, decode_source_key, latest_source_offsets

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True)
class ConnectOffsets:
    """What an offsets topic holds: its committed records in log order, and where its partitions end."""

    topic: str
    records: tuple[InternalRecord, ...]
    ends: Mapping[int, int]


def default_offsets_topic(flow: Flow) -> str:
    """Of the connector's own property, else of MM2 in dedicated mode (MirrorMakerConfig.workerConfig)."""
    return flow.connect_offsets_topic or f"mm2-offsets.{flow.source.alias}.internal"


def read_mm2_positions(flow: Flow, offsets_topic: str | None = None, connector: str | None = None) -> GivenPositions:
    """Where MM2's source connector would go on. ArgumentError when that is not clear, ReplicatorActive while MM2 runs."""
    topic = offsets_topic or default_offsets_topic(flow)
    others = refuse_workers(flow)
    found = read_connect_offsets(flow, topic)
    last = last_offsets(found)
    name = choose_connector(last, flow.source.alias, topic, connector)
    mine = {where: offset for where, offset in last.items() if (where.connector, where.cluster) == (name, flow.source.alias)}
    refuse_movement(flow, topic, found.ends, mine)
    return GivenPositions(
        origin=f"MirrorMaker 2: connector {name}, {topic}",
        positions={(where.topic, where.partition): offset + 1 for where, offset in mine.items() if offset is not None},
        left_out=tuple(
            Skipped(f"{where.topic}-{where.partition}", f"{topic} says its offset was removed")
            for where in sorted(mine)
            if mine[where] is None
        ),
        notices=(
            _guarantee(found, mine),
            *(f"{group} is a Connect group with members: make sure that connector {name} is stopped there" for group in others),
        ),
    )


def read_connect_offsets(flow: Flow, topic: str) -> ConnectOffsets:
    """Everything that is committed in an offsets topic of the target. ArgumentError when there is no such topic."""
    with InternalTopicReader(flow.target) as reader:
        if not reader.partitions(topic):
            raise ArgumentError(
                f"cluster {flow.target.alias} has no topic {topic}: name the offsets topic of MirrorMaker 2's Connect workers "
                "(offset.storage.topic) with --offsets-topic"
            )
        records = tuple(reader.read(topic))
        return ConnectOffsets(topic, records, reader.end_offsets(topic))


def last_offsets(found: ConnectOffsets) -> dict[SourcePartition, int | None]:
    """The last offset that was copied of every source partition, None where it was removed; of all connectors."""
    try:
        return latest_source_offsets(found.records, found.topic)
    except ValueError as problem:
        raise UnreadableRecord(str(problem)) from problem


def choose_connector(entries: Iterable[SourcePartition], alias: str, topic: str, wanted: str | None) -> str:
    """The source connector that copied from `alias` (pure). ArgumentError when there is none, or several and none is `wanted`."""
    entries = list(entries)
    names = sorted({where.connector for where in entries if where.cluster == alias})
    if wanted is not None and wanted not in names:
        raise ArgumentError(
            f"--connector {wanted}: {topic} has no offsets of it from {alias}; it has those of {', '.join(names) or 'none'}"
        )
    if not names:
        aliases = ", ".join(sorted({where.cluster for where in entries})) or "no source at all"
        raise ArgumentError(f"{topic} has no offsets of a MirrorMaker 2 source connector from {alias}; it has those from {aliases}")
    if wanted is None and len(names) > 1:
        raise ArgumentError(f"{topic} has offsets of several connectors from {alias}: choose one with --connector: {', '.join(names)}")
    return wanted or names[0]


def _guarantee(found: ConnectOffsets, mine: Collection[SourcePartition]) -> str:
    if in_transactions(found, mine):
        return "MirrorMaker 2 wrote these offsets in the transactions of its records: nothing is lost and nothing copied twice"
    return (
        "MirrorMaker 2 wrote these offsets without exactly-once, now and then: nothing is lost, but what it copied after its last offsets "
        "is copied once more"
    )


def in_transactions(found: ConnectOffsets, mine: Collection[SourcePartition]) -> bool:
    """Whether the newest offsets were written in transactions (pure): then a control record, which no reader sees, follows each of them."""
    taken = {(record.partition, record.offset) for record in found.records}
    newest = {record.partition: record.offset for record in found.records if decode_source_key(record.key) in mine}
    return all((partition, offset + 1) not in taken and offset + 1 < found.ends[partition] for partition, offset in newest.items())
