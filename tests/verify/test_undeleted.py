"""Which keys the target keeps although the source has deleted them: those whose tombstone nobody copied, whatever was cleaned when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.config import load_config
from ferry.errors import ArgumentError
from ferry.verify.request import VerifyRequest
from ferry.verify.undeleted import check_tombstones, kept_without_source, newest_offsets, shown
from ferry.wire.runs import OffsetRun

pytestmark = pytest.mark.unit

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from([b"a", b"b", b"c", b""]), st.sampled_from([b"1", b"2", None])),
        st.tuples(st.sampled_from(["copy", "clean source", "clean target", "stranger"]), st.just(b"a"), st.just(b"x")),
    ),
    max_size=40,
)


def cleaned(log: list[InternalRecord]) -> list[InternalRecord]:
    """As the cleaner leaves it long after: only the newest of each key, and no tombstone."""
    newest = {record.key: record.offset for record in log}
    return [record for record in log if record.offset == newest[record.key] and record.value is not None]


@dataclass
class History:
    """Both logs and the ledger's runs; `newest`: offset and value of what was produced last for each key."""

    source: list[InternalRecord] = field(default_factory=list)
    target: list[InternalRecord] = field(default_factory=list)
    runs: list[OffsetRun] = field(default_factory=list)
    newest: dict[bytes, tuple[int, bytes | None]] = field(default_factory=dict)
    produced: int = 0
    copied: int = 0
    appended: int = 0

    def step(self, step: str, key: bytes, value: bytes | None) -> None:
        match step:
            case "put":
                self.source.append(InternalRecord(0, self.produced, 0, key, value))
                self.newest[key] = self.produced, value
                self.produced += 1
            case "copy":
                for record in self.source:
                    if record.offset >= self.copied:
                        self.runs.append((record.offset, self.appended, 1))
                        self.append(record.key, record.value)
                self.copied = self.produced
                self.appended += 1  # the marker
            case "stranger":
                self.append(key, value)
            case "clean source":
                self.source = cleaned(self.source)
            case _:
                self.target = cleaned(self.target)

    def append(self, key: bytes, value: bytes | None) -> None:
        self.target.append(InternalRecord(0, self.appended, 0, key, value))
        self.appended += 1

    def lost(self, last: InternalRecord) -> bool:
        """Whether a newest record of the target is of a key that was deleted, and the source has nothing of it any more."""
        offset, value = self.newest.get(last.key, (-1, b""))
        left = any(record.key == last.key for record in self.source if record.offset > self.origins.get(last.offset, -1))
        return value is None and last.value is not None and last.offset in self.origins and offset > self.origins[last.offset] and not left

    @property
    def origins(self) -> dict[int, int]:
        return {downstream: upstream for upstream, downstream, _ in self.runs}


@given(STEPS, st.integers(1, 3))
def test_only_keys_whose_tombstone_was_not_copied(steps: list[tuple[str, bytes, bytes | None]], shares: int) -> None:
    history = History()
    for step in steps:
        history.step(*step)
    lasts = {record.key: record for record in history.target if record.key}
    expected = {last.offset: history.origins[last.offset] for last in lasts.values() if history.lost(last)}
    found: dict[int, int] = {}
    for share in range(shares):
        known = newest_offsets(history.source, (share, shares), 10)
        assert known is not None
        found |= kept_without_source(history.target, known, history.runs, (0, history.produced), (share, shares))
    assert found == expected


def test_what_cannot_be_judged_counts_as_right() -> None:
    value = [InternalRecord(0, 7, 0, b"k", b"v")]
    assert kept_without_source(value, {}, [(3, 7, 1)], (0, 10), (0, 1)) == {7: 3}
    assert kept_without_source(value, {}, [(3, 7, 1)], (4, 10), (0, 1)) == {}, "retention may have dropped it"
    assert kept_without_source(value, {}, [(3, 7, 1)], (0, 3), (0, 1)) == {}, "it came after the verify began"
    assert kept_without_source(value, {}, [(3, 6, 1)], (0, 10), (0, 1)) == {}, "no receipt names it"


def test_more_keys_than_fit_are_taken_in_shares() -> None:
    records = [InternalRecord(0, number, 0, f"{number}".encode(), b"v") for number in range(100)]
    assert newest_offsets(records, (0, 1), 99) is None
    assert len(newest_offsets(records, (0, 1), 100) or ()) == 100


def test_keys_are_shown_as_printable_text() -> None:
    assert shown(b"bob\x00\xff\n\x1b[31m") == r"'bob\x00\xff\n\x1b[31m'"
    assert shown(b"k" * 1_000) == f"'{'k' * 60}'…"


@pytest.mark.parametrize(
    ("line", "since", "told"),
    [
        ("", None, ""),
        ("transaction.producer = false", None, "needs transactions"),
        ("", datetime(2026, 1, 1, tzinfo=UTC), "leave out --from"),
    ],
    ids=["whole", "plain", "interval"],
)
def test_tombstones_that_cannot_be_written_are_refused_at_once(tmp_path: Path, line: str, since: datetime | None, told: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        f"clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n{line}\n", encoding="utf-8"
    )
    (flow,) = load_config(path).flows
    request = VerifyRequest(flow.name, "r", since=since)
    if told:
        with pytest.raises(ArgumentError, match=told):
            check_tombstones(flow, request)
    else:
        check_tombstones(flow, request)
