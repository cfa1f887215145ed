"""What is seen before anything is compared: a remote log that lost its end."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.verify.worlds import REMOTE_ID, SOURCE_ID, receipt

from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.partition_plan import PartitionFacts
from ferry.ledger.receipts import ReceiptKind
from ferry.verify.comparison import VerifyRange
from ferry.verify.evidence import _truncated

pytestmark = pytest.mark.unit

FACTS = PartitionFacts("t", 0, UUID(SOURCE_ID), "r", UUID(REMOTE_ID), 1, 0, 0, 100, 100, 0)


@pytest.mark.parametrize(("end", "failed"), [(99, True), (100, False), (101, False), (None, False)])
def test_a_remote_log_that_ends_before_what_the_ledger_names_was_truncated(end: int | None, failed: bool) -> None:
    receipts = {
        ("t", 0): [
            receipt(ReceiptKind.COPIED, 0, 60, runs=((0, 0, 50), (55, 51, 5)), downstream_end=56),
            receipt(ReceiptKind.COPIED, 60, 100, runs=((60, 60, 40),), downstream_end=100),
            receipt(ReceiptKind.SEED, 0, 0),
        ]
    }
    found = _truncated([FACTS], receipts, {} if end is None else {TopicPartition("r", 0): end})
    assert [(entry.topic, entry.partition, entry.error) for entry in found] == ([("t", 0, "LogChanged")] if failed else [])
    assert all("99" in entry.problem and "100" in entry.problem for entry in found)


def test_topics_without_ids_do_not_share_their_results() -> None:
    """Of clusters older than 2.8: one result for two ranges would leave one of them out."""
    nobody = UUID(int=0)
    one, other = (VerifyRange(name, 0, nobody, f"A.{name}", nobody, (0, 5), (0, 5), b"", ((0, 5),)) for name in ("a", "b"))
    assert one.identity != other.identity
