"""Each fault that a copier could make is found, named as what it is, and nothing else is."""

from __future__ import annotations

import pytest
from tests.verify.conftest import Pair, Row, write
from tests.verify.miscopying import change, double, miscopy, remove, retime, swap

from ferry.errors import CopiesDiffer, ExitCode
from ferry.verify.request import DigestKind
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.brokers

RECORDS = 400
FAULTS = {
    0: remove(7),
    1: double(9),
    2: change(11, b"value-11-", b"value-1X-"),
    3: swap(20, 21),
    4: swap(5, 90),
    5: change(30, b"header-30-", b"header-3X-"),
    6: retime(33),
    7: remove(RECORDS - 1),
    8: double(RECORDS - 1),
    9: change(12, b"key-12-", b"key-1X-"),
}
FOREIGN_BETWEEN, FOREIGN_BEHIND, CLEAN = 10, 11, 12
EXPECTED = {
    0: [("missing", 7, -1)],
    1: [("extra", -1, 10)],
    2: [("altered", 11, 11, "value")],
    3: [("reordered", 21, 20), ("reordered", 20, 21)],
    4: [("reordered", 90, 5), ("reordered", 5, 90)],
    5: [("altered", 30, 30, "headers")],
    6: [("altered", 33, 33, "timestamp")],
    7: [("missing", RECORDS - 1, -1)],
    8: [("extra", -1, RECORDS)],
    9: [("altered", 12, 12, "key")],
    FOREIGN_BETWEEN: [("extra", -1, RECORDS + 1)],
    FOREIGN_BEHIND: [("extra", -1, 2 * RECORDS + 2)],
}

SHAPES: dict[str, dict[str, object]] = {
    "forward-lz4": {"compression.type": "lz4", "batch.num.messages": RECORDS},
    "forward": {"compression.type": "none", "batch.num.messages": RECORDS},
    "reframe": {"compression.type": "none", "batch.num.messages": 3},
    "reframe-zstd": {"compression.type": "zstd", "batch.num.messages": 20},
}


ROWS: list[Row] = [
    (
        f"value-{number}-".encode() + b"x" * (number % 60),
        f"key-{number}-".encode(),
        [("h", f"header-{number}-".encode()), ("h", None)],
        1_700_000_000_000 + number,
    )
    for number in range(RECORDS)
]
STRANGER: list[Row] = [(b"stranger", None, [], 0)]


def found(report: VerifyReport, topic: str) -> dict[int, list[tuple[object, ...]]]:
    named: dict[int, list[tuple[object, ...]]] = {}
    for entry in report.differences:
        fields = (entry.detail,) if entry.kind == "altered" else ()
        if entry.topic == topic:
            named.setdefault(entry.partition, []).append((entry.kind.value, entry.upstream_offset, entry.downstream_offset, *fields))
    return named


@pytest.mark.long
def test_each_fault_is_found_and_nothing_else(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {name: pair.topic(partitions=CLEAN + 1) for name in SHAPES}
    flow = pair.flow(",".join(topics.values()))

    def fill() -> None:
        for name, topic in topics.items():
            write(pair.source, topic, ROWS, range(CLEAN + 1), **SHAPES[name])

    fill()
    struck = miscopy(monkeypatch, {(topic, partition): fault for topic in topics.values() for partition, fault in FAULTS.items()})
    first = pair.run(flow)
    assert len(struck) == len(FAULTS) * len(SHAPES)
    forwarded = {entry.topic for entry in first.partitions if entry.counters.forwarded}
    reframed = {entry.topic for entry in first.partitions if entry.counters.reframed}
    assert (forwarded, reframed) == ({topics["forward-lz4"], topics["forward"]}, {topics["reframe"], topics["reframe-zstd"]})
    for topic in topics.values():
        write(pair.target, pair.remote(flow, topic), STRANGER, [FOREIGN_BETWEEN])
    fill()
    pair.run(flow)
    for topic in topics.values():
        write(pair.target, pair.remote(flow, topic), STRANGER, [FOREIGN_BEHIND])
    report = pair.prove(flow)
    for topic in topics.values():
        assert found(report, topic) == EXPECTED
    assert report.differences_total == len(SHAPES) * sum(len(entries) for entries in EXPECTED.values())
    assert report.exit_code is ExitCode.PARTLY_FAILED
    with pytest.raises(CopiesDiffer, match="upstream 7: missing"):
        report.raise_for_outcome()
    assert report.not_covered == ()
    assert {entry.partition for entry in report.verified if not entry.differences} == {CLEAN}
    by_record = pair.prove(flow, digest=DigestKind.RECORDS)
    assert found(by_record, topics["forward"]) == EXPECTED
    assert {entry.partition for entry in by_record.verified if entry.source_digest == entry.target_digest} == {CLEAN}
    alone = pair.prove(flow, partitions=(CLEAN,))
    assert (alone.equal, alone.records) == (True, 2 * RECORDS * len(SHAPES))
