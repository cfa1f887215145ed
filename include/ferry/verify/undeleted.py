"""Keys that the source has deleted and the target keeps: the source dropped their tombstones before they were copied.

Compaction removes a record only after a newer one of its key, and a tombstone only after delete.retention.ms. So if the source lacks a
record and has no newer one of its key, the newest was a tombstone. Then the target should not keep the record as its newest of the key.

An operator may let Ferry write these tombstones on the target. Ferry holds the flow meanwhile, so no run copies a newer value of a key
between the read and the write. A receipt, in the same transaction, names their downstream offsets, and no upstream ones.

The order of the reads makes it sound: first the source, then the target up to the end that is committed at that moment. A tombstone that
was copied before the source dropped it is there. Records that cannot be judged count as right: those that no receipt names, that a handler
changed, that retention may have dropped, or that came after the verify began; and those with a key of no bytes. Ferry distinguishes keys by
their hashes. If there are more keys than fit in memory, it reads both logs several times, for a share of the keys each time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ferry import clock
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.driver import CopyDriver
from ferry.copying.fencing import RunLease
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, FerryError, LogChanged, count_of
from ferry.ledger.counters import ZERO
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import BY_OPERATOR, ReceiptKind, encode_receipt
from ferry.ledger.topic_ids import id_of
from ferry.verify.comparison import Difference, DifferenceKind, PartitionEvidence, RangeResult
from ferry.verify.evidence import read_evidence
from ferry.verify.request import VerifyRequest
from ferry.verify.verify_report import COMPACTION, VerifyReport
from ferry.wire.ranges import Range, Ranges
from ferry.wire.runs import DOWNSTREAM, OffsetRun, counterpart, once

# Measured: two dictionaries with a hash and offsets for each key.
KEY_BYTES = 300
KEYS_NAMED = 100
KEY_SHOWN = 60
# The most tombstones of one transaction.
KEYS_TOGETHER = 1_000
LOCAL = "applications may write there too: delete the keys at the source, and let a run copy that"
TOMBSTONES = f"{BY_OPERATOR}: tombstones of keys that the source deleted"


def undeleted_keys(opened: OpenFlow, entry: PartitionEvidence) -> dict[int, int]:
    """The target's newest records of keys that the source has deleted: upstream by downstream offsets, in order. Errors of the clusters."""
    if any(receipt.counters.by_handler for receipt in entry.own):
        return {}
    runs = once((run for receipt in entry.own for run in receipt.runs), DOWNSTREAM)
    return dict(sorted(_of_share(opened, entry, runs, (0, 1)).items()))


def verified_keys(opened: OpenFlow, entry: PartitionEvidence) -> RangeResult | None:
    """The result of a verify about such keys, with the first ones by name. None: there are none."""
    name = f"keys of {entry.remote}"
    try:
        found = undeleted_keys(opened, entry)
        told = _told(opened, entry, found) if found else ()
    except FerryError as problem:
        return RangeResult.of_problem(name, entry, problem)
    return RangeResult(name, *entry.key, counts={DifferenceKind.UNDELETED.value: len(found)}, differences=told) if found else None


def _told(opened: OpenFlow, entry: PartitionEvidence, found: Mapping[int, int]) -> tuple[Difference, ...]:
    places = list(found)[:KEYS_NAMED]
    records = opened.target.reader().records_at(entry.remote_topic, {entry.partition: places})
    keys = {record.offset: record.key for record in records}
    pair = (entry.topic, entry.partition, entry.remote_topic)
    why = "the source dropped its tombstone before it was copied, so the target keeps the key"
    return tuple(Difference(*pair, found[place], place, DifferenceKind.UNDELETED, f"key {shown(keys[place])}: {why}") for place in keys)


def check_tombstones(flow: Flow, request: VerifyRequest) -> None:
    """ArgumentError if this flow or this verify does not allow `write_tombstones`."""
    if not flow.exactly_once:
        raise ArgumentError(f"flow {flow.name}: --write-tombstones needs transactions: set transaction.producer=true")
    if request.since is not None or request.until is not None:
        raise ArgumentError("--write-tombstones goes by the newest record of each key: leave out --from and --until")


@dataclass(frozen=True)
class Written:
    """The result for the keys of one remote partition. `problem`: why no tombstone was written."""

    remote_topic: str
    partition: int
    tombstones: int
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.remote_topic}-{self.partition}: {self.problem or count_of(self.tombstones, 'tombstone') + ' written'}"


def write_tombstones(opened: OpenFlow, report: VerifyReport, run_id: str, tell: Callable[[Written], None]) -> None:
    """Write the tombstones that are due now where a verify has found such keys, and `tell` each partition. ArgumentError, Superseded.

    It is a run of its own, `run_id`, for the topics with such keys. So a run that follows gives way, and comes back.
    """
    if not report.counts.get(DifferenceKind.UNDELETED):
        return
    # The report lists only the first differences, but every partition with a compacted source.
    partitions = {TopicPartition(entry.topic, entry.partition) for entry in report.not_covered if entry.reason.startswith(COMPACTION)}
    flow, reader = opened.flow, opened.target.reader()
    request = RunRequest(flow.name, run_id, topics=tuple(sorted({key.topic for key in partitions})))

    def write(lease: RunLease) -> None:
        lease.take_lanes()
        evidence = read_evidence(opened, VerifyRequest(flow.name, run_id, topics=request.topics))
        ledgers = len(reader.partitions(flow.ledger_topic))
        for entry in (found for found in evidence.partitions if found.key in partitions):
            due = list(undeleted_keys(opened, entry))
            local = entry.topic == entry.remote_topic
            for places in (due[at : at + KEYS_TOGETHER] for at in range(0, 0 if local else len(due), KEYS_TOGETHER)):
                keys = [record.key for record in reader.records_at(entry.remote_topic, {entry.partition: places})]
                place = TopicPartition(flow.ledger_topic, entry.key.share(ledgers))
                lease.write({entry.remote: [(key, None) for key in keys]}, partial(_explained, entry, run_id, place))
            if due:
                tell(Written(*entry.remote, 0 if local else len(due), LOCAL if local else ""))

    CopyDriver(opened, request, InlineLaneRunner(), lambda _: None).under_the_fence(write)


def _explained(
    entry: PartitionEvidence, run_id: str, ledger: TopicPartition, written: Mapping[TopicPartition, Ranges]
) -> dict[TopicPartition, list[KeyValue]]:
    """The receipt of tombstones. Each attempt has a key of its own: the receipt of an earlier one may be there."""
    at, spans = max(0, entry.position), written[entry.remote]
    blank = replace(entry.receipt(ReceiptKind.BACKFILLED, at, at, TOMBSTONES), counters=ZERO, run_id=run_id)
    return {ledger: [encode_receipt(replace(blank, written=spans, downstream_end=spans[-1][1], series=clock.token_hex(8)))]}


def shown(key: bytes) -> str:
    """A key for people. It may be any bytes, so it is a Python literal, which is printable ASCII."""
    return repr(key[:KEY_SHOWN])[1:] + ("…" if len(key) > KEY_SHOWN else "")


def _of_share(opened: OpenFlow, entry: PartitionEvidence, runs: Sequence[OffsetRun], share: Range) -> dict[int, int]:
    """`undeleted_keys` for the keys of one share; by halves if there are too many."""
    source, most = opened.source.admin, opened.flow.memory_bytes // KEY_BYTES
    newest = newest_offsets(opened.source.reader().read(entry.topic, only={entry.partition}, complete=False), share, most)
    if newest is None:
        place, shares = share
        halves = (_of_share(opened, entry, runs, (half, 2 * shares)) for half in (place, place + shares))
        return {key: origin for found in halves for key, origin in found.items()}
    starts, ends = (told[0].get(entry.key) for told in (source.earliest_offsets([entry.key]), source.end_offsets([entry.key])))
    today = id_of(source.topics([entry.topic]).get(entry.topic))
    if starts is None or ends is None or ends < entry.source_end or today != entry.topic_ids.source:
        raise LogChanged(*entry.key, f"cluster {source.alias}: the log changed while its keys were compared")
    records = opened.target.reader().read(entry.remote_topic, only={entry.partition})
    return kept_without_source(records, newest, runs, (starts, entry.source_end), share)


def newest_offsets(records: Iterable[InternalRecord], share: Range, most: int) -> dict[int, int] | None:
    """The newest offset of each key, by hash (pure). None: there are more than `most`."""
    newest: dict[int, int] = {}
    for record in records:
        if record.key and (code := hash(record.key)) % share[1] == share[0]:
            newest[code] = record.offset
            if len(newest) > most:
                return None
    return newest


def kept_without_source(
    records: Iterable[InternalRecord], newest: dict[int, int], runs: Sequence[OffsetRun], bounds: Range, share: Range
) -> dict[int, int]:
    """Upstream by downstream offsets of values that are the newest on the target, if the source has no such new record of the key (pure).

    `records`: the target's. `bounds`: the upstream offsets that can be judged.
    """
    kept: dict[int, tuple[int, int]] = {}
    for record in records:
        if not record.key or (code := hash(record.key)) % share[1] != share[0]:
            continue
        origin = counterpart(runs, record.offset, DOWNSTREAM)
        if origin < 0 or newest.get(code, -1) >= origin:
            kept.pop(code, None)
        elif origin > kept.get(code, (-1, -1))[0]:  # a backfill appends older records behind newer ones
            judged = record.value is not None and bounds[0] <= origin < bounds[1]
            kept[code] = origin, record.offset if judged else -1
    return {place: origin for origin, place in kept.values() if place >= 0}
