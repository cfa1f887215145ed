"""Batches for a message handler: it gets the decoded records one by one, and its results are encoded into new batches.

All outputs of one source record stay in one batch. A batch is divided only between source records. So a position never lies inside the
outputs of a record. A batch goes to one partition: where the handler chooses another one, the next batch begins. Neighbours with the same
codec are merged, and the timestamp of a LogAppendTime batch becomes the timestamp of each of its records, as in reframing.
"""

from collections.abc import Iterable
from typing import Any

from ferry.handling.calling import HandlerStopped, PartitionHandling
from ferry.handling.interface import Record
from ferry.wire import compression, varint
from ferry.wire.batch import BatchHeader, MalformedBatch
from ferry.wire.legacy import opened
from ferry.wire.produce_batch import BatchBuilder, Rerouted
from ferry.wire.reframe import GROWTH_PER_RECORD, Reframer, assemble, times
from ferry.wire.varint import Buffer


def decode_records(header: BatchHeader, records: Buffer, topic: str, partition: int) -> list[Record]:
    """All records of one magic-2 batch, `records` decompressed. Raises MalformedBatch. Layout: clients/.../record/DefaultRecord.java."""
    data = bytes(records)
    first, scale = times(header)
    found = []
    at = 0
    lengths_agree = True
    try:
        for _ in range(header.count):
            length, start = varint.decode(data, at)
            end = start + length
            timestamp, at = varint.decode(data, start + 1)  # one byte of attributes precedes the timestamp
            offset, at = varint.decode(data, at)
            key, at = _nullable(data, at, end)
            value, at = _nullable(data, at, end)
            headers, at = _headers(data, at, end)
            time = varint.wrapped(first + timestamp * scale)
            found.append(Record(topic, partition, header.base_offset + offset, time, key, value, headers))
            lengths_agree = lengths_agree and at == end
    except (IndexError, ValueError) as problem:
        raise MalformedBatch(f"unreadable records in the batch at offset {header.base_offset}: {problem}") from problem
    if at != len(data) or not lengths_agree:
        raise MalformedBatch(f"{header.count} records fill {at} of {len(data)} bytes of the batch at offset {header.base_offset}")
    return found


class HandlingBuilder(BatchBuilder):
    """Gives the records of wanted batches to the handler, and makes batches of the records that it returns."""

    def __init__(self, position: int, end: int, handling: PartitionHandling, **limits: Any) -> None:
        """`limits`: the other arguments of BatchBuilder."""
        super().__init__(position, end, **limits)
        self._handling = handling
        self._codec = compression.NONE
        self._chosen: tuple[str, int] | None = None
        self._records = Reframer()
        self._earliest = -1
        self._places: list[int] = []
        self._dropped = 0

    def take_small(self, _: memoryview, at: int, reached: int) -> tuple[int, int]:
        """Take no batch this fast way, because the handler gets every record."""
        return at, reached

    def add(self, header: BatchHeader, view: memoryview) -> None:
        """Give the wanted records to the handler. HandlerStopped if it fails at one: the outputs before it stay."""
        if self._excluded and header.count >= 0 and not self._wanted(header):
            return
        converted, records = opened(header, view, self._max_opened)
        wanted = self._wanted(converted)
        for record in decode_records(converted, records, self._handling.topic, self._handling.partition):
            if any(lower <= record.offset < upper for lower, upper in wanted):
                self._take(record.offset, self._codec_of(header), self._handling(record))

    def finish(self) -> int:
        """End the open batch. The number of dropped records that no batch counts."""
        if self._records.count:
            self._flush()
        return self._dropped

    def _take(self, offset: int, codec: int, outputs: list[Record]) -> None:
        if not outputs:
            self._dropped += 1
            return
        encoded = [_encoded(offset, output) for output in outputs]
        size = sum(len(fields) + GROWTH_PER_RECORD for fields in encoded)
        belongs = codec, self._handling.chosen(outputs[0])
        if self._records.count and (belongs != (self._codec, self._chosen) or len(self._records.body) + size > self._body_limit):
            self._flush()
        self._codec, self._chosen = belongs
        self._note(offset)
        for output, fields in zip(outputs, encoded, strict=True):
            self._append(output.timestamp, fields)

    def _note(self, offset: int) -> None:
        """The record at `offset` gets the next place in the batch. It extends the last run if both offset and place are the next ones."""
        runs = self._records.runs
        if runs:
            first, count = runs[-1]
            if first + count == offset and self._places[-1] + count == self._records.count:
                runs[-1] = (first, count + 1)
                return
        runs.append((offset, 1))
        self._places.append(self._records.count)

    def _append(self, timestamp: int, fields: bytes) -> None:
        into = self._records
        if not into.count:
            into.base_timestamp = self._earliest = timestamp
        record = b"\0" + varint.encode(timestamp - into.base_timestamp) + varint.encode(into.count) + fields
        into.body += varint.encode(len(record))
        into.body += record
        into.max_timestamp, self._earliest = max(into.max_timestamp, timestamp), min(self._earliest, timestamp)
        into.count += 1

    def _flush(self) -> None:
        done, self._records = self._records, Reframer()
        places, payload = tuple(self._places), memoryview(assemble(done, self._codec))
        origin = self._handling.topic, self._handling.partition
        rerouted = None if self._chosen is None else Rerouted(origin, self._chosen)
        own = {"min_timestamp": self._earliest, "places": places, "dropped": self._dropped, "rerouted": rerouted}
        self._keep("handled", payload, tuple(done.runs), count=done.count, max_timestamp=done.max_timestamp, **own)
        self._earliest, self._places, self._dropped = -1, [], 0


def _nullable(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = varint.decode(data, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise ValueError("a field that is longer than its record")
    return data[at : at + length], at + length


def _headers(data: bytes, at: int, end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, at = varint.decode(data, at)
    found = []
    for _ in range(count):
        key, at = _nullable(data, at, end)
        value, at = _nullable(data, at, end)
        if key is None:
            raise ValueError("a header without a key")
        found.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(found), at


def _encoded(offset: int, output: Record) -> bytes:
    """Key, value and headers of a record, as they follow its deltas. HandlerStopped if one of them has a wrong type."""
    if type(output.timestamp) is not int or varint.wrapped(output.timestamp) != output.timestamp:
        raise HandlerStopped(offset, "the handler returned a record whose timestamp is no whole number of ms in 64 bits")
    fields = _field(offset, "key", output.key) + _field(offset, "value", output.value)
    return fields + _encoded_headers(offset, output.headers) if output.headers else fields + b"\0"


def _encoded_headers(offset: int, headers: Iterable[Any]) -> bytes:
    encoded = b""
    count = 0
    try:
        for key, value in headers:
            encoded += _field(offset, "header key", key.encode("utf-8", "surrogateescape")) + _field(offset, "header value", value)
            count += 1
    except (TypeError, ValueError, AttributeError):
        raise HandlerStopped(offset, "the handler returned headers that are no pairs of a text and bytes or None") from None
    return varint.encode(count) + encoded


def _field(offset: int, name: str, content: object) -> bytes:
    if content is None:
        return b"\1"  # -1 as a zigzag varint
    if not isinstance(content, bytes | bytearray | memoryview):
        raise HandlerStopped(offset, f"the handler returned a {name} that is a {type(content).__name__}: bytes or None")
    return varint.encode(len(content)) + bytes(content)
