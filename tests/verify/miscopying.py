"""A copier that does wrong while its ledger says otherwise: batches are rewritten behind the back of whoever counts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ferry.copying import source_feed
from ferry.wire import compression, varint
from ferry.wire.batch import HEADER, HEADER_SIZE, LENGTH_OVERHEAD, read_header
from ferry.wire.produce_batch import ProduceBatch

Row = tuple[int, bytes]  # timestamp, bytes of key, value and headers
Rewrite = Callable[[list[Row]], list[Row]]


def rows_of(payload: memoryview) -> list[Row]:
    header = read_header(payload)
    data = bytes(compression.decompress(header.codec, payload[HEADER_SIZE:]))
    rows, at = [], 0
    for _ in range(header.count):
        length, start = varint.decode(data, at)
        timestamp, at = varint.decode(data, start + 1)
        _, at = varint.decode(data, at)
        rows.append((header.base_timestamp + timestamp, data[at : start + length]))
        at = start + length
    return rows


def batch_of(rows: list[Row], codec: int) -> memoryview:
    first = rows[0][0]
    body = bytearray()
    for index, (timestamp, rest) in enumerate(rows):
        record = b"\0" + varint.encode(timestamp - first) + varint.encode(index) + rest
        body += varint.encode(len(record)) + record
    packed = bytes(compression.compress(codec, bytes(body)))
    latest = max(timestamp for timestamp, _ in rows)
    length = HEADER_SIZE - LENGTH_OVERHEAD + len(packed)
    return memoryview(HEADER.pack(0, length, -1, 2, 0, codec, len(rows) - 1, first, latest, -1, -1, -1, len(rows)) + packed)


def rewritten(unit: ProduceBatch, rewrite: Rewrite) -> ProduceBatch:
    rows = rewrite(rows_of(unit.payload))
    return replace(unit, payload=batch_of(rows, read_header(unit.payload).codec), count=len(rows))


def miscopy(monkeypatch: pytest.MonkeyPatch, faults: dict[tuple[str, int], Rewrite]) -> list[tuple[str, int]]:
    """The last unit of what is fetched of each partition goes wrong, once; the partitions where that has happened."""
    transform, struck = source_feed.transform, []
    take = source_feed.SourceFeed._take

    def wrong_take(self: Any, cursor: Any, fetched: Any, **known: bool) -> list[ProduceBatch]:
        key = (cursor.task.topic, cursor.task.partition)
        if key not in faults or key in struck:
            return take(self, cursor, fetched, **known)

        def wrong(*arguments: Any, **options: Any) -> Any:
            found = transform(*arguments, **options)
            if not found.batches:
                return found
            struck.append(key)
            return replace(found, batches=[*found.batches[:-1], rewritten(found.batches[-1], faults[key])])

        with monkeypatch.context() as patch:
            patch.setattr(source_feed, "transform", wrong)
            return take(self, cursor, fetched, **known)

    monkeypatch.setattr(source_feed.SourceFeed, "_take", wrong_take)
    return struck


def place(rows: list[Row], number: int) -> int:
    """The index of the record with this number: a unit need not begin with the first."""
    return next(index for index, (_, rest) in enumerate(rows) if f"key-{number}-".encode() in rest)


def remove(number: int) -> Rewrite:
    return lambda rows: [*rows[: place(rows, number)], *rows[place(rows, number) + 1 :]]


def double(number: int) -> Rewrite:
    return lambda rows: [*rows[: place(rows, number) + 1], *rows[place(rows, number) :]]


def swap(number: int, other: int) -> Rewrite:
    def swapped(rows: list[Row]) -> list[Row]:
        one, two = place(rows, number), place(rows, other)
        rows = list(rows)
        rows[one], rows[two] = rows[two], rows[one]
        return rows

    return swapped


def change(number: int, old: bytes, new: bytes) -> Rewrite:
    def changed(rows: list[Row]) -> list[Row]:
        at = place(rows, number)
        timestamp, rest = rows[at]
        assert rest.count(old) == 1
        assert len(old) == len(new)
        return [*rows[:at], (timestamp, rest.replace(old, new)), *rows[at + 1 :]]

    return changed


def retime(number: int) -> Rewrite:
    def retimed(rows: list[Row]) -> list[Row]:
        at = place(rows, number)
        return [*rows[:at], (rows[at][0] + 1, rows[at][1]), *rows[at + 1 :]]

    return retimed
