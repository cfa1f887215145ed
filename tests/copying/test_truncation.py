"""What a divergence means for what was copied: nothing, where nothing was copied behind it; else from where to copy again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.logs.leader_epochs import NO_LATER_EPOCH, Divergence, ReadTo
from ferry.clusters.net.leaders import NO_TOPIC_ID
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying import snapshot
from ferry.copying.truncation import Truncation, truncation_of
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head

pytestmark = pytest.mark.unit

HEAD = Head("t", 0, 60, "source", "A.t", "remote", "ledger", source_epoch=4, run_id="run")


def copied(start: int, end: int, *, records: int = -1, epoch: int = 4, kind: ReceiptKind = ReceiptKind.COPIED) -> Receipt:
    """A receipt of [start, end) whose first records were copied, all of them unless `records` says how many."""
    count = end - start if records < 0 else records
    runs = ((start, 1_000 + start, count),) if count else ()
    return Receipt(kind, "t", 0, "source", "A.t", "remote", start, end, runs=runs, source_epoch=epoch)


def test_where_nothing_was_copied_behind_it_reading_again_from_there_is_exact() -> None:
    held = [copied(0, 40, epoch=2), copied(40, 60, records=10)]
    assert truncation_of(HEAD, Divergence(4, 50), held) == Truncation(50, 50, copied=False)
    assert truncation_of(HEAD, Divergence(4, 55), held) == Truncation(55, 55, copied=False)
    assert truncation_of(HEAD, Divergence(4, 49), held) == Truncation(49, 49, copied=True)


def test_what_was_copied_under_later_epochs_than_the_leader_has_is_gone_too() -> None:
    held = [copied(0, 20, epoch=2), copied(20, 40), copied(40, 60)]
    assert truncation_of(HEAD, Divergence(2, 59), held) == Truncation(59, 20, copied=True)
    assert truncation_of(HEAD, Divergence(2, 10), held) == Truncation(10, 10, copied=True)


def test_what_was_backfilled_counts_and_is_not_where_copying_began() -> None:
    held = [copied(5, 60, records=0), copied(0, 5, kind=ReceiptKind.BACKFILLED)]
    assert truncation_of(HEAD, Divergence(4, 7), held) == Truncation(7, 7, copied=False)
    assert truncation_of(HEAD, Divergence(4, 3), held) == Truncation(3, 3, copied=True)


def test_only_receipts_of_the_series_say_what_the_position_was_copied_from() -> None:
    before = copied(0, 60)
    head = replace(HEAD, series="later")
    since = [
        replace(copied(30, 60, records=5), series="later"),
        replace(copied(10, 12, epoch=9), series="other"),
    ]
    assert truncation_of(head, Divergence(4, 40), [before, *since]) == Truncation(40, 40, copied=False)
    assert truncation_of(head, Divergence(4, 20), [before, *since]) == Truncation(20, 20, copied=True), "where a seed said not to begin"
    assert truncation_of(head, Divergence(3, 40), [before, *since]) == Truncation(40, 40, copied=False)
    assert truncation_of(HEAD, Divergence(4, 40), []) == Truncation(40, 40, copied=True), "nothing is known"


@pytest.mark.parametrize(
    ("head", "divergence", "believed"),
    [
        (HEAD, Divergence(4, 40), True),
        (HEAD, Divergence(NO_LATER_EPOCH, 40), False),
        (replace(HEAD, source_epoch=-1), Divergence(NO_LATER_EPOCH, 40), True),
        (replace(HEAD, source_topic_id=str(NO_TOPIC_ID)), Divergence(NO_LATER_EPOCH, 40), True),
    ],
    ids=["proven", "the leader has never heard of the epoch", "no epoch is known", "the topic may be a new one"],
)
def test_a_leader_that_has_lost_touch_with_its_cluster_truncates_nothing(
    head: Head, divergence: Divergence, believed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the epoch of the head, and its log ends before the position. Going back to that end would copy records twice."""
    key = TopicPartition("t", 0)
    held = replace(copied(0, 60), source_topic_id=head.source_topic_id)
    monkeypatch.setattr(snapshot, "diverged_logs", lambda *_: {key: divergence})
    monkeypatch.setattr(snapshot, "read_receipts", lambda *_: [held])
    opened: Any = SimpleNamespace(source=None)
    found = snapshot._truncations(opened, [head], {key: 40}, rewritten=())
    assert found == ({key: Truncation(40, 40, copied=True)} if believed else {})


@pytest.mark.parametrize(("epoch", "led", "asked"), [(4, 4, []), (4, 5, [60]), (-1, 5, []), (4, -1, [])])
def test_a_log_is_compared_only_if_its_leader_was_elected_since(
    epoch: int, led: int, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that ends at the position may hold other records before it. `epoch`: of the last copied record; `led`: of the leader."""
    compared: list[int] = []

    def diverged(_: object, wanted: dict[TopicPartition, ReadTo]) -> dict[TopicPartition, Divergence]:
        compared.extend(read.offset for read in wanted.values())
        return {key: Divergence(4, 50) for key in wanted}

    monkeypatch.setattr(snapshot, "diverged_logs", diverged)
    key, opened = TopicPartition("t", 0), SimpleNamespace(source=None)
    partitions: Any = SimpleNamespace(heads={key: replace(HEAD, source_epoch=epoch)})
    topics = {"t": TopicDescription(None, 1, epochs=(led,))}
    found = snapshot._Partitions.rewritten(partitions, opened, topics)  # type: ignore[arg-type] - as far as it is asked
    assert (compared, set(found)) == (asked, {key} if asked else set())
