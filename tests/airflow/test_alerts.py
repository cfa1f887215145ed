"""Which failures of tasks are told, and how."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.alerting import callbacks

from ferry.airflow import alerts
from ferry.airflow.flows import FlowReference
from ferry.airflow.tasks import EarlierTaskFailed, failure_of_job, typed_retries
from ferry.alerting.alert import AlertKind, Severity
from ferry.alerting.delivering import deliver
from ferry.config.settings import AlertSettings
from ferry.errors import ClusterUnreachable, ConfigError, ExitCode, FerryError, NotAuthorized, PartitionsFailed, SourceDataLost, Superseded
from ferry.ledger.run_report import LossReport, PartitionFailure, RunReport
from ferry.monitoring.limits import BrokenLimit, limits_broken

pytestmark = pytest.mark.airflow

REFERENCE = FlowReference(Path("/no/such/mm2.properties"), "A->B")
STEP = (
    "grant what the message names, then run again; ferry acls /no/such/mm2.properties --flow 'A->B' prints all rights that the flow needs"
)


def context(exception: BaseException | None, task: str = "plan_run", copied: str = "success", tries: int = 1) -> dict[str, Any]:
    states = {"r1": {"copy_records": copied}}
    facts = {"task_id": task, "dag_id": "ferry.A.B", "log_url": "http://x/log", "try_number": tries}
    found = SimpleNamespace(**facts, get_task_states=lambda **_: states)
    return {"ti": found, "run_id": "r1", "exception": exception}


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow's alerts go to the tests' callback, also those of a first failure."""
    settings = AlertSettings(callbacks=("tests.alerting.callbacks:tell",), on_first_failure=True)
    monkeypatch.setattr(alerts, "settings_of", lambda _: SimpleNamespace(alerts=settings))
    callbacks.TOLD.clear()


def raised(problem: FerryError) -> BaseException:
    with pytest.raises(AirflowException) as caught, typed_retries(REFERENCE):
        raise problem
    return caught.value


def test_a_typed_failure_says_what_and_what_to_do() -> None:
    (alert,) = alerts.failure_alerts(REFERENCE, context(raised(NotAuthorized("grant Read on topic t"))))
    assert (alert.kind, alert.severity, alert.what, alert.next_step) == (
        AlertKind.FAILURE,
        "error",
        "NotAuthorized",
        STEP,
    )
    assert alert.message == "A->B: task plan_run failed: grant Read on topic t"
    assert (alert.run_id, alert.url) == ("r1", "http://x/log")


def test_a_loss_is_critical_and_the_rest_of_the_report_comes_along() -> None:
    loss = LossReport("t", 0, 1, 5, "expired")
    report = RunReport("A->B", "r1", "", "", "latest", losses=(loss,), failed=(PartitionFailure("u", 1, "BatchRefused", "too large"),))
    with pytest.raises(AirflowFailException) as caught, typed_retries(REFERENCE):
        report.raise_for_outcome()
    (alert,) = alerts.failure_alerts(REFERENCE, context(caught.value, "report_outcome"))
    assert (alert.what, alert.severity) == ("SourceDataLost", Severity.CRITICAL)
    assert alert.message.startswith("A->B: the source deleted 4 records that Ferry had not copied: t-0 offsets 1 to 4; ")
    assert "PartitionsFailed: run r1 of A->B: 1 failed: u-1: BatchRefused: too large" in alert.message


def test_broken_limits_are_alerts_of_their_own_kind() -> None:
    broken = (BrokenLimit("ferry.alert.lag.seconds", "t", 70.0, 60), BrokenLimit("ferry.alert.lag.records", "t", 7, 5))
    found = alerts.failure_alerts(REFERENCE, context(raised(limits_broken("A->B", broken)), "check_limits"))
    assert [(alert.kind, alert.what, alert.value, alert.url) for alert in found] == [
        ("limit", "ferry.alert.lag.seconds", 70.0, "http://x/log"),
        ("limit", "ferry.alert.lag.records", 7, "http://x/log"),
    ]


@pytest.mark.parametrize(
    "exception",
    [EarlierTaskFailed("its log names the reason"), failure_of_job(REFERENCE, ExitCode.SUPERSEDED, "")],
    ids=["earlier task", "superseded job"],
)
def test_failures_that_are_reported_elsewhere_raise_no_alert(exception: BaseException) -> None:
    assert alerts.failure_alerts(REFERENCE, context(exception)) == []


def test_a_superseded_run_raises_no_alert() -> None:
    assert alerts.failure_alerts(REFERENCE, context(raised(Superseded("a newer run")))) == []


def test_the_alert_of_a_job_names_its_exit_code() -> None:
    (alert,) = alerts.failure_alerts(REFERENCE, context(failure_of_job(REFERENCE, ExitCode.UNREACHABLE, ""), "copy_records"))
    assert "exit code 3 (unreachable)" in alert.message


def test_the_text_of_a_foreign_exception_is_not_in_the_alert() -> None:
    (alert,) = alerts.failure_alerts(REFERENCE, context(ValueError("password=hush")))
    assert "hush" not in str(alert.document())
    assert (alert.what, alert.severity) == ("ValueError", "error")


def test_a_task_that_was_found_dead_raises_an_alert() -> None:
    (alert,) = alerts.failure_alerts(REFERENCE, context(None, "copy_records"))
    assert (alert.what, "died" in alert.message) == ("TaskDied", True)


def test_finding_the_callbacks_needs_no_connection(tmp_path: Path) -> None:
    lines = ("clusters = A, B", "A.ferry.airflow.connection = gone", "B.bootstrap.servers = b:9092", "A->B.enabled = true")
    config = tmp_path / "mm2.properties"
    config.write_text("\n".join([*lines, "A->B.ferry.alert.callback = tests.alerting.callbacks:tell"]), encoding="latin-1")
    callbacks.TOLD.clear()
    alerts.on_failure(FlowReference(config, "A->B"))(context(raised(ConfigError("connection gone: there is none"))))
    assert [alert["what"] for _, alert in callbacks.TOLD] == ["ConfigError"]


@pytest.mark.parametrize(("copied", "problem", "told"), [
    ("failed", PartitionsFailed("the run: ClusterUnreachable"), 0),
    ("success", PartitionsFailed("u-1: BatchRefused"), 1),
    ("failed", SourceDataLost("t-0"), 1),
])  # fmt: skip
def test_a_report_does_not_repeat_the_alert_of_the_copy(copied: str, problem: FerryError, told: int, telling: None) -> None:
    alerts.on_failure(REFERENCE)(context(raised(problem), "report_outcome", copied))
    assert len(callbacks.TOLD) == told


@pytest.mark.parametrize(("copied", "problem", "told"), [
    ("success", PartitionsFailed("groups: 1 failed"), 0),
    ("skipped", PartitionsFailed("groups: 1 failed"), 0),
    ("failed", PartitionsFailed("groups: 1 failed"), 1),
    ("upstream_failed", PartitionsFailed("groups: 1 failed"), 1),
    ("success", ClusterUnreachable("B"), 1),
])  # fmt: skip
def test_a_sync_raises_an_alert_only_if_no_report_will(copied: str, problem: FerryError, told: int, telling: None) -> None:
    alerts.on_failure(REFERENCE)(context(raised(problem), "sync_groups", copied))
    assert len(callbacks.TOLD) == told


@pytest.mark.parametrize(("problem", "tries", "told"), [
    (ClusterUnreachable("B"), 1, ["warning"]),
    (ClusterUnreachable("B"), 2, []),
    (Superseded("a newer run"), 1, []),
])  # fmt: skip
def test_a_first_failure_raises_a_warning(problem: FerryError, tries: int, told: list[str], telling: None) -> None:
    alerts.on_retry(REFERENCE)(context(raised(problem), tries=tries))
    assert [alert["severity"] for _, alert in callbacks.TOLD] == told


def test_a_first_failure_that_the_report_will_tell_raises_no_alert(telling: None) -> None:
    alerts.on_retry(REFERENCE)(context(raised(PartitionsFailed("groups: 1 failed")), "sync_groups", "success"))
    assert callbacks.TOLD == []


def test_a_first_failure_raises_no_alert_if_nobody_asked_for_it(telling: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told = AlertSettings(callbacks=("tests.alerting.callbacks:tell",))
    monkeypatch.setattr(alerts, "settings_of", lambda _: SimpleNamespace(alerts=told))
    alerts.on_retry(REFERENCE)(context(raised(ClusterUnreachable("B"))))
    assert callbacks.TOLD == []


def test_a_loss_raises_an_alert_although_a_newer_run_took_over() -> None:
    loss = LossReport("t", 0, 1, 5, "expired")
    report = RunReport("A->B", "r1", "", "", "latest", losses=(loss,), superseded="a newer run")
    with pytest.raises(AirflowFailException) as caught, typed_retries(REFERENCE):
        report.raise_for_outcome()
    (alert,) = alerts.failure_alerts(REFERENCE, context(caught.value, "report_outcome"))
    assert (alert.what, alert.severity) == ("SourceDataLost", Severity.CRITICAL)


@pytest.mark.parametrize(("state", "told"), [("running", 1), ("queued", 1), ("failed", 0), ("success", 0)])
def test_a_deadline_counts_for_runs_that_have_not_ended(state: str, told: int, telling: None) -> None:
    alerts.deadline_missed("mm2.properties", "A->B", {"dag_run": {"dag_run_id": "r1", "dag_id": "ferry.A.B", "state": state}})
    assert len(callbacks.TOLD) == told


class Paging(BaseNotifier):
    """A notifier as users of Airflow write them."""

    template_fields = ("text",)

    def __init__(self, *, text: str) -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None:
        callbacks.TOLD.append((self.text, context["run_id"]))


def test_a_notifier_of_airflow_gets_its_templates_rendered() -> None:
    (alert,) = alerts.failure_alerts(REFERENCE, context(raised(NotAuthorized("grant Read"))))
    name = f"{__name__}:Paging"
    callbacks.TOLD.clear()
    problems = deliver(AlertSettings(callbacks=(name,), callback_args={name: {"text": "{{ alert.flow }}: {{ alert.next_step }}"}}), [alert])
    assert (problems, callbacks.TOLD) == ([], [(f"A->B: {STEP}", "r1")])


def test_the_webhook_of_the_page_posts_the_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    module: dict[str, Any] = {}
    exec(code, module)  # noqa: S102 - the documentation's own
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    (alert,) = alerts.failure_alerts(REFERENCE, context(raised(NotAuthorized("grant Read"))))
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("PAGING_WEBHOOK", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        module["post"](alert)
        server.shutdown()
        thread.join()
    assert [json.loads(body) for body in received] == [alert.document()]


def test_an_alert_that_cannot_be_made_fails_nothing() -> None:
    alerts.on_failure(REFERENCE)(context(raised(NotAuthorized("x"))))
    alerts.on_failure(REFERENCE)({})
