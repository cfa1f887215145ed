"""Receipts, the records of the ledger. A receipt describes one contiguous upstream range of one partition.

It is written in the transaction that copies its range, so it exists exactly if the records do. Without transactions, it is written after
the records are acknowledged, so it never exists without them. The ledger topic is compacted; the key has
source topic id, partition, upstream start, kind and series, so a receipt never replaces one of another kind.
Runs map upstream to downstream offsets. They are delta-coded (ferry.wire.runs) and stored as base64 in a JSON value that people can read.
"""

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import UnreadableRecord
from ferry.ledger.counters import ONE_TRANSACTION, ZERO, Counters
from ferry.ledger.formats import FORMAT_VERSION, compact, require_version
from ferry.wire.coded_runs import coded_runs
from ferry.wire.ranges import Ranges, size, union, within
from ferry.wire.runs import DOWNSTREAM, OffsetRun, encode_runs, offsets_of
from ferry.wire.strict_json import number, read_document, text

# At most about 100 KB of coded runs: a receipt stays far below the default max.message.bytes of 1 MiB.
RUNS_PER_RECEIPT = 10_000

# Readers distinguish some reasons by how they begin: the reason of a `skipped` receipt of a refused record (other skipped ranges had
# expired before a backfill copied them), of an operator's seed or declaration, and of the seed at the first position of a partition.
REFUSED, BY_OPERATOR, BY_START_POLICY = "refused by the target", "operator", "start policy"
# The end of the reason of a seed, if the copy of a new topic begins at this seed.
CREATED_AGAIN = "was deleted and created again"


class ReceiptKind(StrEnum):
    COPIED = "copied"
    BACKFILLED = "backfilled"
    LOSS = "loss"
    SKIPPED = "skipped"
    SEED = "seed"
    FOREIGN = "foreign"


COPIES = frozenset({ReceiptKind.COPIED, ReceiptKind.BACKFILLED})
SETTLING = frozenset({*COPIES, ReceiptKind.LOSS, ReceiptKind.SKIPPED, ReceiptKind.FOREIGN})


@dataclass(frozen=True)
class Receipt:
    """One settled range `[upstream_start, upstream_end)` of a source partition.

    A `foreign` receipt has no runs: another replicator wrote the records below `downstream_end` that no other receipt of the remote topic
    explains. Nobody knows which of the upstream range they hold. Timestamps are in ms, -1: there is no record. Topic ids are uuids as text.
    """

    kind: ReceiptKind
    topic: str
    partition: int
    source_topic_id: str
    remote_topic: str
    remote_topic_id: str
    upstream_start: int
    upstream_end: int
    downstream_end: int = -1  # exclusive end of the records of this receipt in the remote partition (-1: it has none)
    runs: Sequence[OffsetRun] = ()  # records that a message handler added are in no run
    counters: Counters = ONE_TRANSACTION
    written: Ranges = ()  # the downstream ranges of all batches with records that a message handler added
    # The end of the remote partition when an operator's seed began a ledger that does not explain the records there (-1: no such seed).
    found: int = -1
    min_timestamp: int = -1
    max_timestamp: int = -1
    source_epoch: int = -1
    # The remote partition's leader epoch under which all records were appended, for the flow in the other direction (-1: not known).
    remote_epoch: int = -1
    run_id: str = ""
    reason: str = ""
    # The run whose seed set the position from which the range was copied (empty: the first position). So if an operator moves the position
    # back, new receipts do not replace receipts of records that are still there.
    series: str = ""
    # Without transactions: downstream ranges, before these records, that hold records without a receipt. A run was ended before it wrote a
    # receipt, and the records were copied again.
    repeated: Ranges = ()

    @property
    def key(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def by_operator(self) -> bool:
        """Whether an operator wrote this seed, or declared these records. Ferry wrote other seeds itself, or from other positions."""
        return self.reason.startswith(BY_OPERATOR)


def is_loss(receipt: Receipt) -> bool:
    """Whether records of the range are lost: they expired at the source before the copy, or the target refused them."""
    return receipt.kind == ReceiptKind.LOSS or (receipt.kind == ReceiptKind.SKIPPED and receipt.reason.startswith(REFUSED))


def covered(receipts: Iterable[Receipt]) -> Ranges:
    """The upstream offsets that receipts settle. The receipts may overlap or contain each other."""
    return union((receipt.upstream_start, receipt.upstream_end) for receipt in receipts if receipt.kind in SETTLING)


def declared_ends(receipts: Collection[Receipt]) -> tuple[int, int]:
    """The downstream offsets below which operators declared records as another replicator's, and as older than the ledger; -1: none."""
    foreign = (receipt.downstream_end for receipt in receipts if receipt.kind is ReceiptKind.FOREIGN)
    found = (receipt.found for receipt in receipts if receipt.kind is ReceiptKind.SEED)
    return max(foreign, default=-1), max(found, default=-1)


def encode_receipt(receipt: Receipt) -> tuple[bytes, bytes]:
    """Key and value of a ledger record."""
    key: dict[str, object] = {
        "id": receipt.source_topic_id,
        "topic": receipt.topic,
        "partition": receipt.partition,
        "start": receipt.upstream_start,
        "kind": receipt.kind.value,
        **({"series": receipt.series} if receipt.series else {}),
    }
    value = {
        "version": FORMAT_VERSION,
        "end": receipt.upstream_end,
        "downstream_end": receipt.downstream_end,
        "runs": base64.b64encode(encode_runs(receipt.runs)).decode() if receipt.runs else "",
        "remote_topic": receipt.remote_topic,
        "remote_id": receipt.remote_topic_id,
        **receipt.counters.document(),
        "timestamps": [receipt.min_timestamp, receipt.max_timestamp],
        "source_epoch": receipt.source_epoch,
        "run": receipt.run_id,
        "reason": receipt.reason,
    }
    rare = (
        *(("found", receipt.found, -1), ("remote_epoch", receipt.remote_epoch, -1)),
        *(("written", receipt.written, ()), ("repeated", receipt.repeated, ())),
    )
    value.update({name: found for name, found, usual in rare if found != usual})
    return compact(key), compact(value)


def decode_receipt(key: bytes, value: bytes, where: str = "the ledger") -> Receipt:
    """The inverse of `encode_receipt`. NewerFormat or UnreadableRecord for anything else. `where`: see formats.place_of."""
    try:
        name, what = read_document(key), read_document(value)
        require_version(what, where)
        return Receipt(
            kind=ReceiptKind(name["kind"]),
            topic=text(name["topic"]),
            partition=number(name["partition"]),
            source_topic_id=text(name["id"]),
            remote_topic=text(what["remote_topic"]),
            remote_topic_id=text(what["remote_id"]),
            upstream_start=number(name["start"]),
            upstream_end=number(what["end"]),
            downstream_end=number(what["downstream_end"]),
            runs=coded_runs(base64.b64decode(what["runs"], validate=True)) if what["runs"] else (),
            counters=Counters.of_document(what),
            written=_ranges(what.get("written", ())),
            repeated=_ranges(what.get("repeated", ())),
            found=number(what.get("found", -1)),
            min_timestamp=number(what["timestamps"][0]),
            max_timestamp=number(what["timestamps"][1]),
            source_epoch=number(what["source_epoch"]),
            remote_epoch=number(what.get("remote_epoch", -1)),
            run_id=text(what["run"]),
            reason=text(what["reason"]),
            series=text(name.get("series", "")),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: record {key!r} is not a receipt: {problem}") from problem


def _ranges(pairs: Iterable[Iterable[object]]) -> Ranges:
    return tuple((number(start), number(end)) for start, end in pairs)


_PARTS = {
    # Texts without JSON escapes, numbers of at most 64 bits.
    "TEXT": r'"[^"\\\x00-\x1f\x80-\xff]*"',
    "NUMBER": r"-?(?:0|[1-9]\d{0,17})",
    "NUMBERS": r"[-+.\de,\[\]]*",
    "KIND": "|".join(ReceiptKind),
    "VERSION": str(FORMAT_VERSION),
}
# Every field that this Ferry writes, with the shape of its value. RARELY: the writer leaves out the field if it has its usual value.
# `found` has no shape, so `glance` gives None for a receipt that has it: readers need this field, and decode the receipt.
KEY_FIELDS = {"id": "(TEXT)", "kind": '"(KIND)"', "partition": "(NUMBER)", "series": "RARELY TEXT", "start": "(NUMBER)", "topic": "(TEXT)"}
VALUE_FIELDS = {
    **dict.fromkeys(("bytes", "forwarded", "records", "reframed", "source_epoch", "transactions"), "NUMBER"),
    **dict.fromkeys(("run", "runs"), "TEXT"),
    **dict.fromkeys(("reason", "remote_id"), "(TEXT)"),
    **dict.fromkeys(("delays", "handled", "repeated", "written"), "RARELY NUMBERS"),
    **dict.fromkeys(("from_target", "remote_epoch", "rerouted"), "RARELY NUMBER"),
    **dict.fromkeys(("downstream_end", "end"), "(NUMBER)"),
    "found": "",
    "remote_topic": "(TEXT)",
    "timestamps": r"\[NUMBER,NUMBER\]",
    "version": "VERSION",
}


def _pattern(fields: Mapping[str, str]) -> re.Pattern[bytes]:
    """An expression for a JSON object with these fields; the first field is always there."""
    rarely = {name: shape.removeprefix("RARELY ") for name, shape in fields.items() if shape.startswith("RARELY")}
    parts = (f'(?:,"{name}":{rarely[name]})?' if name in rarely else f',"{name}":{fields[name]}' for name in sorted(fields) if fields[name])
    template = rf"\{{{''.join(parts)[1:]}\}}"
    return re.compile(re.sub("[A-Z]+", lambda part: _PARTS[part.group()], template).encode())


_KEY, _VALUE = _pattern(KEY_FIELDS), _pattern(VALUE_FIELDS)


class Glance(NamedTuple):
    """The fields of a receipt that decide whether a reader needs it."""

    kind: str
    topic: str
    partition: int
    remote_topic: str
    downstream_end: int
    source_topic_id: str
    remote_topic_id: str
    upstream_start: int
    upstream_end: int
    reason: str


def glance(key: bytes, value: bytes) -> Glance | None:
    """Read only the fields of Glance. Decoding a receipt takes many times as long as fetching it, and most readers of a ledger need few.

    A regular expression reads them if the bytes are exactly as `encode_receipt` writes them. Any other record (another format version,
    fields of a newer Ferry, names that JSON escapes) gives None: then call `decode_receipt`, which raises errors.
    """
    named, said = _KEY.fullmatch(key), _VALUE.fullmatch(value)
    if named is None or said is None:
        return None
    source_id, kind, partition, start, topic = named.groups()
    downstream_end, end, reason, remote_id, remote_topic = said.groups()
    return Glance(
        kind.decode(),
        topic[1:-1].decode(),
        int(partition),
        remote_topic[1:-1].decode(),
        int(downstream_end),
        source_id[1:-1].decode(),
        remote_id[1:-1].decode(),
        int(start),
        int(end),
        reason[1:-1].decode(),
    )


_RUN = re.compile(rb'"run":("(?:[^"\\]|\\.)*")')


def run_of(value: bytes) -> bytes:
    """The run id in a receipt's value, as JSON. The value itself if it holds none: `decode_receipt` raises the error."""
    found = _RUN.search(value)
    return value if found is None else found[1]


def holds_more(key: bytes, value: bytes) -> bool:
    """Whether a receipt has fields that a newer Ferry added: writing it again would lose them."""
    return not (json.loads(key).keys() <= KEY_FIELDS.keys() and json.loads(value).keys() <= VALUE_FIELDS.keys())


def split_receipt(receipt: Receipt) -> tuple[Receipt, ...]:
    """The same range as several receipts with at most RUNS_PER_RECEIPT runs each.

    The first has all counters but `records` and `added`, which every receipt has, and `repeated`. The last has `written`.
    """
    if len(receipt.runs) <= RUNS_PER_RECEIPT:
        return (receipt,)
    pieces: list[Receipt] = []
    start = receipt.upstream_start
    for index in range(0, len(receipt.runs), RUNS_PER_RECEIPT):
        behind = index + RUNS_PER_RECEIPT
        runs, following = receipt.runs[index:behind], receipt.runs[behind : behind + 1]
        end, downstream_end = receipt.upstream_end, receipt.downstream_end
        added = receipt.counters.added - sum(piece.counters.added for piece in pieces)
        named = sum(run[2] for run in runs)
        if following:
            # Added records are in no run, but in `written`. Other offsets between runs may hold records of the topic's own producers.
            spans = within(receipt.written, runs[0][1], following[0][1])
            places = union([*spans, *offsets_of(runs, DOWNSTREAM)])
            end, downstream_end, added = following[0][0], places[-1][1], size(places) - named
        counters = (ZERO if index else receipt.counters)._replace(records=named + added, added=added)
        piece = replace(receipt, upstream_start=start, upstream_end=end, runs=runs, downstream_end=downstream_end, counters=counters)
        piece = replace(piece, repeated=() if index else receipt.repeated)
        pieces.append(replace(piece, written=()) if following else piece)
        start = end
    return tuple(pieces)
