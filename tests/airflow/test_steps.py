"""What a step does if another run has taken the flow over, which tasks a run leaves out, and the last line of the log of a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, DownstreamTasksSkipped

from ferry.airflow import assets, steps, tasks
from ferry.airflow.flows import FlowReference
from ferry.airflow.run_note import LEFT_OUT
from ferry.airflow.spark_operators import CopyRecordsOperator, FerrySparkOperator
from ferry.airflow.tasks import JobFailed
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.ledger.run_report import PartitionFailure, RunReport
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.airflow

FLOW = FlowReference(Path("mm2.properties"), "A->B")
SYNCS = {"sync_acls": "acls", "sync_groups": "groups"}
BEFORE = {"sync_schemas": "schemas"}
SKIPPED = "sync_acls is skipped: done 3 s ago"


def sync_tasks(_: object, names: Iterable[SyncName]) -> dict[str, str]:
    return {task: name for task, name in (BEFORE | SYNCS).items() if SyncName(name) in names}


class Undue:
    """Of the syncs only the schemas and the ACLs were done too short a time ago."""

    def __init__(self, *_: object) -> None: ...

    def not_due(self, name: SyncName, soon: float) -> str:
        assert soon == steps.SOON_SECONDS
        return "done 3 s ago" if name in {SyncName.SCHEMAS, SyncName.ACLS} else ""


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
    with pytest.raises(AirflowException if why is None else AirflowSkipException, match=why or "it measures"):
        steps.sync(FLOW, "groups", planned) if step == "sync" else steps.check_limits(FLOW, planned)


@pytest.mark.parametrize(
    ("code", "failed", "line"),
    [
        (None, (), f"0 records, 0 bytes in 2.0 s (0.0 MB/s, CPU 1.0 s), 0 partitions\n{SKIPPED}"),
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
        opened = flow = None

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
    monkeypatch.setattr(steps, "sync_tasks", sync_tasks)
    monkeypatch.setattr(steps, "Syncs", Undue)
    left: dict[str, Any] = {}
    monkeypatch.setattr(tasks, "get_current_context", lambda: {"ti": SimpleNamespace(xcom_push=left.__setitem__)})
    monkeypatch.setattr(steps, "open_run", Played)
    monkeypatch.setattr(steps, "status_after_run", lambda *_: SimpleNamespace(lag=SimpleNamespace(records=1_234)))
    task = CopyRecordsOperator(task_id="copy_records", flow=FLOW, conn_id="spark_default", planned={})
    with pytest.raises(DownstreamTasksSkipped if code is None else JobFailed) as ended:
        task.execute({})
    assert capsys.readouterr().out.partition("of Spark\n")[2].splitlines() == (line.splitlines() if line else [])
    assert left.get(LEFT_OUT) == (None if code is not None else {"sync_acls": "done 3 s ago"})
    assert getattr(ended.value, "tasks", ["sync_acls"]) == ["sync_acls"]


def test_after_a_run_that_was_taken_over_no_sync_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(report=lambda **_: RunReport("A->B", "run", "", "", "", taken_over="newer"), opened=None)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: SimpleNamespace())
    monkeypatch.setattr(steps, "sync_tasks", sync_tasks)
    monkeypatch.setattr(steps, "open_run", lambda *_: nullcontext(run))
    assert steps.sum_up(FLOW, {}) == dict.fromkeys(SYNCS, steps.TAKEN_OVER)


@pytest.mark.parametrize(
    ("plan", "tries", "left_out"),
    [
        ({}, 1, ["prepare_topics", "copy_records", "announce_topics", "sync_schemas", "sync_acls"]),
        ({}, 2, ["prepare_topics", "copy_records", "sync_schemas", "sync_acls"]),
        ({"needs_preparation": True}, 1, ["announce_topics", "sync_schemas", "sync_acls"]),  # prepare_topics leaves out the copy
        ({"needs_copy": True}, 1, ["prepare_topics", "sync_schemas"]),  # the syncs behind a copy are decided after it
        ({"needs_copy": True, "needs_preparation": True}, 1, ["sync_schemas"]),
        (
            {"needs_copy": True, "needs_preparation": True, "dry_run": True},
            1,
            ["prepare_topics", "copy_records", "announce_topics", "check_limits", "report_outcome", "sync_schemas", "sync_acls"],
        ),
    ],
)
def test_a_plan_leaves_out_the_tasks_that_have_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plan: dict[str, bool], tries: int, left_out: list[str]
) -> None:
    """After a copy it is decided anew which syncs are due. If the whole run is tried again, an earlier try may have copied something."""
    wanted = {"needs_copy": False, "needs_preparation": False, **plan}
    dry_run = wanted.pop("dry_run", False)
    planned = SimpleNamespace(**wanted, document=lambda: {"partitions": [], "failed": []}, partitions=(), notices=())
    run = SimpleNamespace(plan=planned, flow=None, opened=None)
    left: dict[str, Any] = {}
    context = {"ti": SimpleNamespace(try_number=tries, xcom_push=left.__setitem__), "params": {"dry_run": dry_run}}
    for module in (steps, tasks):
        monkeypatch.setattr(module, "get_current_context", lambda: context)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: None)
    monkeypatch.setattr(steps, "sync_tasks", sync_tasks)
    monkeypatch.setattr(steps, "Syncs", Undue)
    monkeypatch.setattr(steps, "plan_parts", lambda _: [])
    monkeypatch.setattr(steps, "open_run", lambda *_: nullcontext(run))
    with pytest.raises(DownstreamTasksSkipped) as ended:
        steps.plan(FLOW)
    assert ended.value.tasks == left_out
    document, reasons = left["return_value"], left[LEFT_OUT]
    assert (document["needs_copy"], document["dry_run"]) == (wanted["needs_copy"] and not dry_run, dry_run)
    said = capsys.readouterr().out.splitlines()
    assert said == [f"{task} is skipped: {why}" for task, why in reasons.items()]
    assert all(reasons.values())


@pytest.mark.parametrize("step", [steps.prepare, steps.check_limits, assets.announce, lambda *of: steps.report(*of, None)])
def test_a_task_without_work_that_has_a_process_skips_itself(step: Callable[[FlowReference, dict[str, bool]], object]) -> None:
    """For example because somebody cleared it."""
    with pytest.raises(AirflowSkipException, match="dry run"):
        step(FLOW, {"dry_run": True, "needs_copy": False, "needs_preparation": False})


@pytest.mark.parametrize("needs_copy", [True, False])
def test_once_topics_are_prepared_a_copy_without_work_is_left_out(monkeypatch: pytest.MonkeyPatch, needs_copy: bool) -> None:
    """Not before: the later tasks wait only for the copy."""
    made = SimpleNamespace(refused=(), failed=(), document=lambda: {"created": ["A.orders"]})
    left: dict[str, Any] = {}
    monkeypatch.setattr(tasks, "get_current_context", lambda: {"ti": SimpleNamespace(xcom_push=left.__setitem__)})
    monkeypatch.setattr(steps, "get_current_context", dict)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: None)
    monkeypatch.setattr(steps, "open_run", lambda *_: nullcontext(SimpleNamespace(prepare=lambda **_: made)))
    with nullcontext() if needs_copy else pytest.raises(DownstreamTasksSkipped):
        assert steps.prepare(FLOW, {"dry_run": False, "needs_copy": needs_copy, "needs_preparation": True}) == made.document()
    assert left.get("return_value") == (None if needs_copy else made.document())
    assert list(left.get(LEFT_OUT, ())) == ([] if needs_copy else ["copy_records"])
