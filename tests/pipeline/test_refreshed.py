"""What a run put into remote topics, from its receipts."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt, encode_receipt
from ferry.pipeline import refreshed
from ferry.pipeline.refreshed import PARTITIONS_TOLD, RefreshedPartition, refreshed_topics

pytestmark = pytest.mark.unit


def receipt(
    topic: str, partition: int, start: int, end: int, first: int, *, kind: str = "copied", stamps: tuple[int, int] = (5, 9), run: str = "r"
) -> Receipt:
    count = end - start
    low, high = stamps
    return Receipt(
        ReceiptKind(kind), topic, partition, "s", f"A.{topic}", "r", start, end, first + count, ((start, first, count),),
        counters=Counters(count, count * 10), min_timestamp=low, max_timestamp=high, run_id=run,
    )  # fmt: skip


def test_receipts_of_a_partition_are_one_range_on_both_sides() -> None:
    (topic,) = refreshed_topics(
        [receipt("t", 1, 10, 15, 101), receipt("t", 1, 15, 20, 107, stamps=(-1, -1)), receipt("t", 0, 0, 2, 0)], "r"
    )
    assert (topic.topic, topic.remote_topic, topic.records, topic.min_timestamp, topic.max_timestamp) == ("t", "A.t", 12, 5, 9)
    assert topic.partitions == (RefreshedPartition(0, 0, 2, 0, 2, 2, 20, 2), RefreshedPartition(1, 10, 20, 101, 112, 10, 100, 10))


def test_backfilled_history_stands_behind_newer_records() -> None:
    (topic,) = refreshed_topics([receipt("t", 0, 100, 110, 0), receipt("t", 0, 40, 50, 11, kind="backfilled")], "r")
    assert topic.partitions == (RefreshedPartition(0, 40, 110, 0, 21, 20, 200, 20),)


def test_what_another_run_copied_between_two_tries_is_not_told() -> None:
    tries = [receipt("t", 0, 0, 100, 0), receipt("t", 0, 200, 300, 202, stamps=(20, 29))]
    between = receipt("t", 0, 100, 200, 101, stamps=(1, 99), run="another")
    elsewhere = receipt("u", 0, 0, 9, 0, run="another")
    (topic,) = refreshed_topics([*tries, elsewhere, between], "r")
    assert topic.partitions == (
        RefreshedPartition(0, 0, 100, 0, 100, 100, 1_000, 100),
        RefreshedPartition(0, 200, 300, 202, 302, 100, 1_000, 100),
    )
    assert (topic.min_timestamp, topic.max_timestamp) == (5, 29)
    other, alone = refreshed_topics([*tries, between, elsewhere], "another")
    assert [len(entry.partitions) for entry in (other, alone)] == [1, 1]


def test_only_what_put_records_there_refreshes_a_topic() -> None:
    empty = Receipt(ReceiptKind.COPIED, "dropped", 0, "s", "A.dropped", "r", 0, 5, counters=Counters(dropped=5))
    assert refreshed_topics([receipt("lost", 0, 0, 5, 0, kind="loss"), receipt("seed", 0, 0, 5, 0, kind="seed"), empty], "r") == ()


def test_what_a_handler_added_is_part_of_the_range() -> None:
    added = Receipt(
        ReceiptKind.COPIED, "t", 0, "s", "A.t", "r", 5, 6, 13, ((5, 11, 1),), Counters(4, 9, added=3), written=((9, 13),), run_id="r"
    )
    (topic,) = refreshed_topics([added], "r")
    assert topic.partitions == (RefreshedPartition(0, 5, 6, 9, 13, 4, 9, 1),)


def test_facts_are_json_and_bounded() -> None:
    (topic,) = refreshed_topics([receipt("t", number, 0, 3, 0) for number in range(PARTITIONS_TOLD + 10)], "r")
    facts = topic.facts("A->B", "run-1")
    assert json.loads(json.dumps(facts)) == facts
    assert (len(facts["partitions"]), facts["partitions_left_out"]) == (PARTITIONS_TOLD, 10)
    assert (facts["records"], facts["flow"], facts["run_id"]) == (3 * (PARTITIONS_TOLD + 10), "A->B", "run-1")
    assert facts["partitions"][1] == [1, 0, 3, 0, 3, 3]


def test_of_a_receipt_that_has_grown_only_the_last_of_each_run_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = [encode_receipt(receipt("t", 0, 0, end, 100, run=run)) for run in ("r", 'a "run":"r"') for end in (5, 10, 15)]
    read = [InternalRecord(0, number, 0, *pair) for number, pair in enumerate(ledger)]
    decoded: list[bytes] = []

    def counting(key: bytes, value: bytes, where: str) -> Receipt:
        decoded.append(value)
        return decode_receipt(key, value, where)

    monkeypatch.setattr(refreshed, "decode_receipt", counting)
    flow = SimpleNamespace(ledger_topic="ledger", target=SimpleNamespace(alias="B"))
    reader = SimpleNamespace(read=lambda *_: iter(read))
    opened: Any = SimpleNamespace(flow=flow, target=SimpleNamespace(reader=lambda: reader))
    found = refreshed.ask_receipts_since(opened, {}).answer()
    assert [(entry.run_id, entry.upstream_end) for entry in found] == [("r", 15), ('a "run":"r"', 15)]
    assert decoded == [ledger[2][1], ledger[5][1]]
