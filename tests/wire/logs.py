"""Logs of partitions as brokers would serve them, drawn at random, and what a read_committed consumer would see of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from ferry.wire.produce_batch import ProduceBatch, Transformed
from ferry.wire.transform import transform

END = 1 << 62


@dataclass
class Log:
    """A partition as a broker would serve it, and what a read_committed consumer would see."""

    data: bytes
    visible: list[Any]
    aborted: list[tuple[int, int]]
    end: int


@st.composite
def partitions(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Descriptions of entries, of every kind a partition can hold."""
    return draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "kind": st.sampled_from(
                        ["plain", "plain", "plain", "transaction", "abort", "commit", "append time", "horizon", "empty", "old"]
                    ),
                    "codec": st.sampled_from([0, 0, 0, 0, 0, 1, 2, 3, 4]),
                    "steps": st.lists(st.just(1), min_size=1, max_size=3) | st.lists(st.sampled_from([1, 2, 40]), min_size=1, max_size=6),
                    "gap": st.sampled_from([0, 0, 0, 1, 30]),
                    "tail": st.sampled_from([0, 0, 0, 3]),
                    "producer": st.integers(1, 2),
                    "time": st.integers(0, 1 << 42) | st.just(1_700_000_000_000),
                    "size": st.sampled_from([0, 3, 70, 400]),
                    "magic": st.integers(0, 1),
                }
            ),
            max_size=10,
        )
    )


def log_of(kafka: Any, entries: list[dict[str, Any]]) -> Log:
    parts: list[bytes] = []
    seen: list[tuple[int, list[Any]]] = []  # producer of an open transaction or 0, rows
    opened: dict[int, int] = {}
    aborted = []
    offset = 0
    for entry in entries:
        offset += entry["gap"]
        offsets = [offset + sum(entry["steps"][:index]) for index in range(len(entry["steps"]))]
        rows = [
            kafka.Row(
                at,
                entry["time"] + index,
                None if at % 3 else b"k%d" % at,
                b"v" * entry["size"] if at % 5 else None,
                (("a", b"b"),) * (at % 3),
            )
            for index, at in enumerate(offsets)
        ]
        kind, codec, producer, last = entry["kind"], entry["codec"], entry["producer"], offsets[-1] + entry["tail"]
        shown = rows
        owner = 0
        if kind == "plain":
            part = kafka.build(rows, codec=codec, last_offset=last)
        elif kind == "transaction":
            part = kafka.build(rows, codec=codec, last_offset=last, attributes=0x10, producer_id=producer)
            opened.setdefault(producer, offset)
            owner = producer
        elif kind in ("abort", "commit"):
            part, shown, last = kafka.control(offset, producer, int(kind == "commit")), [], offset
            if producer in opened:
                first = opened.pop(producer)
                if kind == "abort":
                    aborted.append((producer, first))
                    seen = [(0, []) if who == producer else (who, what) for who, what in seen]
                seen = [(0 if who == producer else who, what) for who, what in seen]
        elif kind == "append time":
            part = kafka.build(rows, codec=codec, last_offset=last, attributes=0x08, max_timestamp=77)
            shown = [row._replace(timestamp=77) for row in rows]
        elif kind == "horizon":
            part = kafka.build(rows, codec=codec, last_offset=last, attributes=0x40)
        elif kind == "empty":
            part, shown = kafka.build([], base_offset=offset, last_offset=last), []
        else:
            shown = [row._replace(headers=(), timestamp=row.timestamp if entry["magic"] else -1) for row in rows]
            part, last = kafka.message_set(shown, entry["magic"], min(codec, 3)), offsets[-1]
        parts.append(part)
        seen.append((owner, shown))
        offset = last + 1
    # What is still open lies beyond the last stable offset and is not served; here it counts as committed.
    return Log(b"".join(parts), [row for _, rows in seen for row in rows], aborted, offset)


def check_tiling(units: list[ProduceBatch], position: int, next_position: int) -> None:
    edges = [position, *(unit.upstream_end for unit in units)]
    assert [unit.upstream_start for unit in units] == edges[:-1]
    if units:
        assert edges[-1] == next_position
    for unit in units:
        assert unit.upstream_start <= unit.runs[0][0]
        assert sum(unit.runs[-1]) <= unit.upstream_end
        assert unit.size == len(b"".join(unit.encode(1, 1, 1, True)))


def limited(fetched: memoryview, limits: Mapping[str, int], **options: Any) -> Transformed:
    """`transform` with other values of its module's constants."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(f"ferry.wire.transform.{name}", value)
        return transform(fetched, **options)
