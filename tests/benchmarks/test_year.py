"""A ledger's size follows what the target retains and the runs of a day, not how many runs there ever were; nothing is forgotten by it."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from benchmarks.scale.year import RECORDS, STEP, SimulatedLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.copying import ledger_compaction as upkeep
from ferry.ledger.receipts import RUNS_PER_RECEIPT, covered
from ferry.ledger.state import FlowRecord
from ferry.translation.offset_map import LogBounds, OffsetMap

pytestmark = pytest.mark.unit

RUNS_A_DAY = 144
AT_LEAST = 300  # new records before the ledger is tidied; 20,000 in earnest


def bound(partitions: int, retained_runs: int) -> int:
    """Twice what cannot be merged (a day's receipts, and per partition the newest one and some pieces), and what is new since."""
    pieces = 3 + retained_runs // RUNS_PER_RECEIPT
    # A merged receipt is young for a day, so those of several compactions stand beside each other.
    settled = partitions * (RUNS_A_DAY + 1 + pieces) + partitions * RUNS_A_DAY
    return 2 * settled + AT_LEAST


@settings(max_examples=8)
@given(partitions=st.integers(1, 3), retained_runs=st.integers(0, 2_000), runs=st.integers(1, 1_500))
def test_size_is_bounded_and_nothing_is_forgotten(partitions: int, retained_runs: int, runs: int) -> None:
    ledger = SimulatedLedger(partitions, retained_runs)
    with patch.object(upkeep, "COMPACTION_RECORDS", AT_LEAST):
        for number in range(runs):
            ledger.run(number)
    assert ledger.peak <= bound(partitions, retained_runs)
    log_start, end = max(0, runs - 1 - retained_runs) * STEP, runs * STEP
    for partition in range(partitions):
        own = [receipt for receipt in ledger.receipts() if receipt.partition == partition]
        assert covered(own) == ((0, runs * RECORDS),)
        told = OffsetMap(own, LogBounds(0, log_start, end, runs * RECORDS, exactly_once=True))
        for run in {max(0, runs - 1 - retained_runs), runs // 2, runs - 1}:
            if run * STEP >= log_start:
                assert told.translate(run * RECORDS + 3).image == run * STEP + 3


def test_the_number_of_runs_does_not_count() -> None:
    """Once a day's receipts are there, more runs make the ledger no larger."""
    ledger = SimulatedLedger(3, 1_008)
    peaks = []
    with patch.object(upkeep, "COMPACTION_RECORDS", AT_LEAST):
        for number in range(4_000):
            ledger.run(number)
            if number in {1_499, 3_999}:
                peaks.append(ledger.peak)
    assert peaks[1] <= peaks[0] * 1.1
    assert ledger.compactions > 10


def test_upkeep_is_due_when_as_much_is_new_as_was_left() -> None:
    record = FlowRecord("A->B", 8, tidied=1_000, receipts=50_000)
    assert not upkeep.is_due(50_999, record)
    assert upkeep.is_due(51_000, record)
    assert not upkeep.is_due(20_999, FlowRecord("A->B", 8, tidied=1_000))
    assert upkeep.is_due(21_000, FlowRecord("A->B", 8, tidied=1_000))
    assert upkeep.is_due(999, record), "the ledger was deleted and begun anew"
