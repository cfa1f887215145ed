"""Where MirrorMaker 2 stopped, from Kafka Connect's offsets topic on the target; and whether it still runs.

Only committed records count. With exactly-once MM2 writes its offsets in the transactions of its records, so both agree. Without it, MM2
may have copied more than its last offsets say, and Ferry copies that again.

The offsets are out of date while MM2 runs. Its workers are members of a Connect group on the target. On a shared Connect cluster the
members say nothing about one connector, and the group's name is not known. So Ferry also watches the connector's offsets and remote topics.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ferry import clock
from ferry.clusters.groups.group_model import GroupDescription
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.errors import ArgumentError, NotAuthorized, ReplicatorActive, UnreadableRecord, count_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.migration.positions import GivenPositions
from ferry.wire.connect_offsets import SourcePartition, decode_source_key, latest_source_offsets

# A replicator under load writes many times in this time. An idle one has members in its group, or nothing to write.
WATCH_SECONDS = 5.0
CONNECT = "connect"
IN_TRANSACTIONS = "MirrorMaker 2 wrote these offsets in the transactions of its records: nothing is lost and nothing copied twice"
NOW_AND_THEN = (
    "MirrorMaker 2 wrote these offsets without exactly-once, now and then: nothing is lost, but what it copied after its last offsets "
    "is copied once more"
)


@dataclass(frozen=True)
class ConnectOffsets:
    """The committed records of an offsets topic in log order, and where its partitions end."""

    topic: str
    records: tuple[InternalRecord, ...]
    ends: Mapping[int, int]


def default_offsets_topic(flow: Flow) -> str:
    """The connector's own property; otherwise the topic of MM2 in dedicated mode (MirrorMakerConfig.workerConfig)."""
    return flow.connect_offsets_topic or f"mm2-offsets.{flow.source.alias}.internal"


def read_mm2_positions(opened: OpenFlow, offsets_topic: str | None = None, connector: str | None = None) -> GivenPositions:
    """Where MM2's source connector would go on. ArgumentError when the connector is not clear, ReplicatorActive while MM2 runs."""
    flow = opened.flow
    topic = offsets_topic or default_offsets_topic(flow)
    others = refuse_workers(opened)
    found = read_connect_offsets(opened, topic)
    last = last_offsets(found)
    name = choose_connector(last, flow.source.alias, topic, connector)
    mine = {where: offset for where, offset in last.items() if (where.connector, where.cluster) == (name, flow.source.alias)}
    refuse_active_mm2(opened, topic, found.ends, mine)
    positions = {TopicPartition(where.topic, where.partition): offset + 1 for where, offset in mine.items() if offset is not None}
    removed = sorted(where for where, offset in mine.items() if offset is None)
    left_out = tuple(Skipped(f"{where.topic}-{where.partition}", f"{topic} says its offset was removed") for where in removed)
    notices = [IN_TRANSACTIONS if in_transactions(found, mine) else NOW_AND_THEN]
    notices += [f"{group} is a Connect group with members: make sure that connector {name} is stopped there" for group in others]
    return GivenPositions(f"MirrorMaker 2: connector {name}, {topic}", positions, left_out=left_out, notices=tuple(notices))


def read_connect_offsets(opened: OpenFlow, topic: str) -> ConnectOffsets:
    """Everything that is committed in an offsets topic of the target. ArgumentError when there is no such topic."""
    reader = opened.target.reader()
    if not reader.partitions(topic):
        raise ArgumentError(
            f"cluster {opened.target.alias} has no topic {topic}: name the offsets topic of MirrorMaker 2's Connect workers "
            "(offset.storage.topic) with --offsets-topic"
        )
    records = tuple(reader.read(topic))
    return ConnectOffsets(topic, records, reader.ask_end_offsets(topic).answer())


def last_offsets(found: ConnectOffsets) -> dict[SourcePartition, int | None]:
    """The last copied offset of every source partition of all connectors; None where it was removed."""
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


def in_transactions(found: ConnectOffsets, mine: Collection[SourcePartition]) -> bool:
    """Whether the newest offsets were written in transactions (pure): then a control record, which no reader gets, follows each."""
    taken = {(record.partition, record.offset) for record in found.records}
    newest = {record.partition: record.offset for record in found.records if decode_source_key(record.key) in mine}
    return all((partition, offset + 1) not in taken and offset + 1 < found.ends[partition] for partition, offset in newest.items())


def refuse_workers(opened: OpenFlow) -> tuple[str, ...]:
    """ReplicatorActive when MM2's own worker group has members. Returns the other Connect groups of the target that have members."""
    flow = opened.flow
    worker_group = f"{flow.source.alias}-mm2"  # of MM2 in dedicated mode (MirrorMakerConfig.workerConfig)
    with opened.target.groups() as groups:
        names = [listed.group for listed in groups.list() if listed.protocol_type == CONNECT]
        described = groups.describe([*names, worker_group])
    active = {name: entry for name, entry in described.items() if isinstance(entry, GroupDescription) and entry.active}
    workers = described[worker_group]
    if isinstance(workers, NotAuthorized):  # then it is not known whether MM2 runs
        raise workers
    own = active.pop(worker_group, None)
    if own is not None:
        hosts = ", ".join(sorted({member.host.lstrip("/") for member in own.members})) or own.state
        raise ReplicatorActive(
            f"MirrorMaker 2 runs: Connect group {own.group} on {flow.target.alias} has {count_of(len(own.members), 'member')} ({hosts}); "
            f"stop every connect-mirror-maker process of {flow.name} (by SIGTERM, so that it writes its last offsets), then do this again. "
            "One that was killed stays in the group for 10 s"
        )
    return tuple(sorted(active))


def refuse_active_mm2(opened: OpenFlow, topic: str, ends: Mapping[int, int], mine: Collection[SourcePartition]) -> None:
    """ReplicatorActive when new offsets of `mine` arrive in the offsets topic after `ends`, or their remote topics grow."""
    flow, target = opened.flow, opened.target.admin
    policy = flow.policy
    # Under the identity policy producers of the target may write to these topics too.
    topics = {policy.format_remote_topic(flow.source.alias, where.topic) for where in mine} if policy.renames else set()
    known = {name: entry.partitions for name, entry in target.topics().items() if name in topics}
    keys = [TopicPartition(name, number) for name, width in known.items() for number in range(width)]
    before, _ = target.end_offsets(keys, committed=False)
    clock.sleep(WATCH_SECONDS)
    after, _ = target.end_offsets(keys, committed=False)
    grown = sorted({key.topic for key in before if after.get(key, before[key]) > before[key]})
    news = opened.target.reader().read(topic, ends, complete=False)
    written = [record for record in news if decode_source_key(record.key) in mine]
    if written or grown:
        what = f"{count_of(len(written), 'new offset')} in {topic}" if written else f"new records in {', '.join(grown)}"
        raise ReplicatorActive(
            f"MirrorMaker 2 is still at work: {what} within {WATCH_SECONDS:.0f} s; stop its processes for {flow.name}, or the source "
            "connector on the Connect cluster that runs it, then do this again"
        )
