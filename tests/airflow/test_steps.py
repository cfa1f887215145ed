"""What a step of a run does if another run has taken the flow over, and the last line of the log of a copy."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from ferry.airflow import steps
from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import CopyRecordsOperator, FerrySparkOperator
from ferry.airflow.tasks import JobFailed
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.ledger.run_report import PartitionFailure, RunReport

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("step", "by", "why"),
    [
        ("sync", "newer", "another run has taken the flow over"),
        ("sync", "", "another run has taken the flow over"),
        ("check_limits", "", "a command has taken the flow over"),
        ("check_limits", "newer", None),
        ("check_limits", None, None),
    ],
)
def test_what_the_newer_run_does_is_skipped(monkeypatch: pytest.MonkeyPatch, step: str, by: str | None, why: str | None) -> None:
    class TakenOver:
        def __init__(self, *_: object) -> None:
            self.taken_over = lambda: by
            self.report = MagicMock(side_effect=ClusterUnreachable("it measures"))

        def __enter__(self) -> TakenOver:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

    planned = {"dry_run": False, "needs_copy": True}
    monkeypatch.setattr(steps, "get_current_context", dict)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: SimpleNamespace())
    monkeypatch.setattr(steps, "open_run", TakenOver)
    flow = FlowReference(Path("mm2.properties"), "A->B")
    with pytest.raises(AirflowException if why is None else AirflowSkipException, match=why or "it measures"):
        steps.sync(flow, "groups", planned) if step == "sync" else steps.check_limits(flow, planned)


@pytest.mark.parametrize(
    ("code", "failed", "line"),
    [
        (None, (), "0 records, 0 bytes in 2.0 s (0.0 MB/s, CPU 1.0 s), 0 partitions"),
        (
            ExitCode.PARTLY_FAILED,
            (PartitionFailure("orders", 3, "TopicMissing", "gone"),),
            "0 records, 0 bytes in 2.0 s (0.0 MB/s, CPU 1.0 s), 0 partitions; failed: orders-3; 1,234 records left",
        ),
        (ExitCode.UNREACHABLE, (), None),
        (ExitCode.OTHER, None, "what was copied cannot be read: ClusterUnreachable: B is away"),
    ],
)
def test_the_last_line_of_a_copy_says_what_was_copied_what_failed_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: ExitCode | None,
    failed: tuple[PartitionFailure, ...] | None,
    line: str | None,
) -> None:
    """It does not wait for a cluster for which the job has just waited in vain."""

    class Played:
        opened = None

        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> Played:
            return self

        def __exit__(self, *_: object) -> None: ...

        def report(self, *, idle: bool) -> RunReport:
            assert not idle
            if failed is None:
                raise ClusterUnreachable("B is away")
            return RunReport("A->B", "run", "", "", "", failed=failed, seconds=2.0, cpu_seconds=1.0)

    def copies(*_: object) -> None:
        print("of Spark")  # noqa: T201 - the log
        if code is not None:
            failure = JobFailed("the job failed")
            failure.exit_code = code
            raise failure

    monkeypatch.setattr(FerrySparkOperator, "execute", copies)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: SimpleNamespace())
    monkeypatch.setattr(steps, "open_run", Played)
    monkeypatch.setattr(steps, "status_after_run", lambda *_: SimpleNamespace(lag=SimpleNamespace(records=1_234)))
    task = CopyRecordsOperator(
        task_id="copy_records", flow=FlowReference(Path("mm2.properties"), "A->B"), conn_id="spark_default", planned={}
    )
    with nullcontext() if code is None else pytest.raises(JobFailed):
        task.execute({})
    assert capsys.readouterr().out.partition("of Spark\n")[2].splitlines() == ([line] if line else [])
