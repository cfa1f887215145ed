"""A sync whose task died fails the run by name: the report is the run's last word."""

from __future__ import annotations

import pytest

from ferry.airflow.steps import with_absent_syncs
from ferry.errors import ExitCode, PartitionsFailed
from ferry.ledger.run_report import RunReport
from ferry.ledger.sync_outcome import LISTED, SyncOutcome

pytestmark = pytest.mark.airflow

TASKS = {"sync_configs": "configs", "sync_acls": "acls"}


def report(*ended: str) -> RunReport:
    syncs = {name: SyncOutcome(sync=name).document(LISTED) for name in ended}
    return RunReport("A->B", "run", "then", "now", "latest", syncs=syncs)


def test_all_ended() -> None:
    assert with_absent_syncs(report("configs", "acls"), TASKS, {}).exit_code is ExitCode.DONE


def test_one_died() -> None:
    found = with_absent_syncs(report("configs"), TASKS, {})
    assert found.exit_code is ExitCode.PARTLY_FAILED
    with pytest.raises(PartitionsFailed, match="the run: RunUnfinished: sync acls did not end: see the log of task sync_acls"):
        found.raise_for_outcome()


def test_one_was_left_out() -> None:
    """Its task had no process. What an earlier try did stays."""
    left = {"copy_records": "nothing to copy", "sync_acls": "done 3 s ago", "sync_configs": "done 9 s ago"}
    found = with_absent_syncs(report("configs"), TASKS, left)
    assert found.exit_code is ExitCode.DONE
    assert {name: outcome["left_out"] for name, outcome in found.syncs.items()} == {"configs": "", "acls": "done 3 s ago"}
