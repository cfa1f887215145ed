"""Which receipts count when topics were created again."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from ferry.clusters.admin.describe import TopicDescription
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.topic_ids import TopicIds, created_again, id_of, valid_receipts

pytestmark = pytest.mark.unit

TODAY = Receipt(ReceiptKind.COPIED, "t", 0, "source", "A.t", "remote", 0, 5)
OTHERS = [
    replace(TODAY, source_topic_id="older source"),
    replace(TODAY, remote_topic_id="older remote"),
    replace(TODAY, partition=1),
    replace(TODAY, topic="u"),
]


def test_only_receipts_of_both_topics_of_today_count() -> None:
    assert valid_receipts([*OTHERS, TODAY], {("t", 0): TopicIds("source", "remote")}) == {("t", 0): [TODAY]}


def test_receipts_of_an_older_source_topic_count_where_only_the_remote_topic_matters() -> None:
    assert valid_receipts([*OTHERS, TODAY], {("t", 0): TopicIds("source", "remote")}, any_source=True) == {("t", 0): [OTHERS[0], TODAY]}


def test_ids_are_written_as_in_receipts() -> None:
    topic = TopicDescription(None, 1)
    assert id_of(topic) == str(UUID(int=0))
    assert id_of(replace(topic, topic_id=str(UUID(int=7)).upper())) == str(UUID(int=7))
    assert id_of(None) == ""


@pytest.mark.parametrize(
    ("recorded", "today", "again"), [("a", "a", False), ("a", "b", True), ("a", None, False), ("", "b", False), ("", None, False)]
)
def test_only_two_known_ids_tell_that_a_topic_was_created_again(recorded: str, today: str | None, *, again: bool) -> None:
    assert created_again(recorded, today) == again
