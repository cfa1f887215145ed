"""The cells and lines that the command line and Airflow show alike."""

from __future__ import annotations

import pytest

from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncOutcome
from ferry.pipeline.tables import Table, sync_line

pytestmark = pytest.mark.unit


def test_a_cell_of_none_is_empty_and_a_truth_is_no_number() -> None:
    table = Table("t", ("a", "b", "c", "d"), [(None, True, 1_000, 0.5)])
    assert table.texts == [["", "True", "1,000", "0.5"]]


def test_a_sync_in_one_line() -> None:
    done = SyncOutcome((Change("topic t", "set"),) * 2, (Skipped("topic u", "excluded"),), sync="configs")
    assert sync_line(done.document()) == "configs: 2 changed, 1 left alone, 0 failed"
    assert sync_line(SyncOutcome(sync="acls", left_out="not due").document()) == "acls: left out: not due"
