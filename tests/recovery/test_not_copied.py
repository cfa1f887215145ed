"""What counts as left behind, and as a producer that goes on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.copying.test_partition_plan import KNOWN, plan

from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.request import RunRequest
from ferry.copying.snapshot import FlowSnapshot
from ferry.ledger.state import FlowState
from ferry.pipeline.run_plan import RunPlan
from ferry.policy.selection import Selection
from ferry.recovery.not_copied import grown, not_copied
from ferry.syncs.topics import TopicPlan

pytestmark = pytest.mark.unit

DRAINED = replace(KNOWN, end=50, stable_end=50, remote_topic="t")


@pytest.mark.parametrize(("cluster", "left"), [("A", 1), ("B", 0)])
def test_only_open_transactions_at_the_source_hold_records_back(cluster: str, left: int) -> None:
    """Under the identity policy both partitions have one name."""
    held = LastStableLag("t", 0, cluster, "servers", TopicPartition("t", 0), 40, 60)
    seen = FlowSnapshot(Selection((), ()), {}, {}, (DRAINED,), FlowState(), {})
    planned = RunPlan("A->B", RunRequest("A->B", "run"), TopicPlan(), (plan(DRAINED),), (), (), seen, last_stable_lags=(held,))
    found = not_copied(planned, SimpleNamespace(source=SimpleNamespace(alias="A")))  # type: ignore[arg-type]
    assert [entry.reason for entry in found] == ["a transaction is open from 40 on, and the log ends at 60"] * left


def test_what_was_copied_to_a_remote_topic_that_is_gone_is_not_on_the_other_side() -> None:
    gone = plan(replace(DRAINED, log_start=20, remote_topic_id=None, remote_partitions=0, committed=None))
    assert gone.failure is not None
    seen = FlowSnapshot(Selection((), ()), {}, {}, (gone.facts,), FlowState(), {})
    planned = RunPlan("A->B", RunRequest("A->B", "run"), TopicPlan(), (gone,), (), (), seen)
    (found,) = not_copied(planned, SimpleNamespace(source=SimpleNamespace(alias="A")))  # type: ignore[arg-type]
    assert (found.start, found.end, found.offsets) == (20, 50, 30)


def test_a_new_topic_with_records_counts_as_grown() -> None:
    old, new, empty = TopicPartition("t", 0), TopicPartition("new", 0), TopicPartition("new", 1)
    assert grown({old: 7}, {old: 7, new: 2, empty: 0}) == [new]
    assert grown({old: 7}, {old: 8}) == [old]
    assert grown({old: 7}, {}) == []
