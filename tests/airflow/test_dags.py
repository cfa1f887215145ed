"""The DAGs that a config file becomes: read without any network."""

from __future__ import annotations

import copy
import json
import re
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError

import ferry.page
from ferry.airflow.flows import FlowReference
from ferry.airflow.spark_operators import FerrySparkOperator
from ferry.airflow.verify_dag import verify_request_of
from ferry.errors import ArgumentError
from ferry.recovery.stages import Stage
from ferry.recovery.stages import stages as recovery_stages
from ferry.verify.request import VerifyRequest

pytestmark = pytest.mark.airflow

SYNCS = ["sync_configs", "sync_acls", "sync_heartbeat", "sync_offset_syncs", "sync_checkpoints"]
BESIDE = ["announce_topics", "check_limits"]
TASKS = ["plan_run", "prepare_topics", "copy_records", *SYNCS, *BESIDE, "report_outcome"]
CONFIG = """\
clusters = A, B
A.bootstrap.servers = nowhere.invalid:9092
B.bootstrap.servers = elsewhere.invalid:9092
A->B.enabled = true
A->B.ferry.schedule = */10 * * * *
B->A.enabled = true
B->A.sync.group.offsets.enabled = true
B->A.sync.topic.acls.enabled = false
B->A.emit.heartbeats.interval.seconds = -1
"""
NO_SYNCS = """\
sync.topic.configs.enabled = false
sync.topic.acls.enabled = false
emit.heartbeats.enabled = false
emit.offset-syncs.enabled = false
emit.checkpoints.enabled = false
"""


def dagbag(monkeypatch: pytest.MonkeyPatch) -> DagBag:
    def refuse(*_: object) -> None:
        raise AssertionError("parsing must not reach for a network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return DagBag(dag_folder=str(Path(__file__).parents[2] / "dags"))


@pytest.fixture
def bag(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DagBag:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    return dagbag(monkeypatch)


def test_one_dag_for_each_flow(bag: DagBag) -> None:
    assert bag.import_errors == {}
    beside = ["", ".cutover", ".failback", ".failover", ".verify"]
    assert sorted(bag.dags) == [f"{flow}{kind}" for flow in ("ferry.A.B", "ferry.B.A") for kind in beside]


def test_two_flows_never_share_a_dag(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow keeps the last of two DAGs with one id, without a word."""
    pairs = ("A.B->C", "A->B.C")
    servers = [f"{alias}.bootstrap.servers = {alias}.invalid:9092" for alias in ("A", "A.B", "B.C", "C")]
    path = tmp_path / "mm2.properties"
    path.write_text("\n".join(["clusters = A, A.B, B.C, C", *servers, *(f"{pair}.enabled = true" for pair in pairs)]))
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    found = dagbag(monkeypatch)
    (problem,) = found.import_errors.values()
    assert "would both have the DAG ferry.A.B.C: rename an alias" in problem
    assert not found.dags


def test_the_tasks_and_their_order(bag: DagBag) -> None:
    dag = bag.dags["ferry.A.B"]
    assert {task.task_id for task in dag.tasks} == set(TASKS)
    assert [task.task_id for task in dag.topological_sort()][:3] == TASKS[:3]
    assert dag.get_task("copy_records").max_active_tis_per_dag == 1
    report = dag.get_task("report_outcome")
    assert (report.retries, report.trigger_rule) == (0, "all_done")
    assert all(dag.get_task(name).retries == 3 for name in TASKS[:3])
    assert [asset.name for asset in report.outlets] == ["ferry.A.B"]


def test_topics_that_need_no_change_are_skipped_and_stop_no_copy(bag: DagBag) -> None:
    assert bag.dags["ferry.A.B"].get_task("copy_records").trigger_rule == "none_failed"


PARSED = """
import json, sys
from airflow.sdk.definitions._internal.dag_parsing_context import _airflow_parsing_context_manager as of_task
with of_task(dag_id=sys.argv[1], task_id=sys.argv[2]):
    from ferry.airflow.dags import flows
    tasks = {dag.dag_id: {task.task_id: task.task_type for task in dag.tasks} for dag in flows()}
slow = ("airflow.providers.apache.spark.operators", "openlineage", "ferry.airflow.recovering", "ferry.airflow.verify_dag")
print(json.dumps([tasks, [name for name in slow if name in sys.modules]]))
"""
SPARK, RECOVERY, VERIFY = "airflow.providers.apache.spark.operators", "ferry.airflow.recovering", "ferry.airflow.verify_dag"
FOR_PEOPLE = {f"ferry.B.A.{command}" for command in ("verify", "failover", "failback", "cutover")}


@pytest.mark.long
@pytest.mark.parametrize(
    ("dag_id", "task_id", "made", "slow"),
    [
        ("ferry.A.B", "plan_run", {"ferry.A.B"}, set()),
        ("ferry.A.B", "copy_records", {"ferry.A.B"}, {SPARK}),
        ("ferry.B.A.failback", "check_clusters", FOR_PEOPLE, {SPARK, RECOVERY, VERIFY}),
    ],
)
def test_the_process_of_a_task_makes_few_dags(bag: DagBag, dag_id: str, task_id: str, made: set[str], slow: set[str]) -> None:
    """The DAG has all its tasks. Of the replication's, only the process of the copy has the operator that submits to Spark."""
    done = subprocess.run([sys.executable, "-c", PARSED, dag_id, task_id], capture_output=True, text=True, check=True)
    dags, loaded = json.loads(done.stdout.splitlines()[-1])
    assert (set(dags), set(loaded) - {"openlineage"}) == (made, slow)
    assert set(dags[dag_id]) == set(bag.dags[dag_id].task_dict)
    assert ("openlineage" in loaded) <= (SPARK in loaded)
    if dag_id == "ferry.A.B":
        assert dags[dag_id]["copy_records"] == ("CopyRecordsOperator" if task_id == "copy_records" else "BaseOperator")


def test_the_bodies_of_tasks_can_be_copied(bag: DagBag) -> None:
    """Airflow 3.0 copies them for `airflow dags test`."""
    bodies = [task.python_callable for dag in bag.dags.values() for task in dag.tasks if hasattr(task, "python_callable")]
    assert len(bodies) > 10
    for body in bodies:
        assert callable(copy.copy(body))


def test_each_enabled_sync_is_a_task_of_its_own_after_the_copy(bag: DagBag) -> None:
    for name in SYNCS:
        task = bag.dags["ferry.A.B"].get_task(name)
        assert (task.trigger_rule, task.downstream_task_ids) == ("all_done", {"report_outcome"})
        assert "copy_records" in task.upstream_task_ids
    other = {task.task_id for task in bag.dags["ferry.B.A"].tasks} - {
        "plan_run",
        "prepare_topics",
        "copy_records",
        *BESIDE,
        "report_outcome",
    }
    assert other == {"sync_configs", "sync_offset_syncs", "sync_checkpoints", "sync_groups"}


def test_without_syncs_the_report_waits_for_the_copy(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG.replace("B->A.enabled = true\n", "").replace("B->A.sync.group.offsets.enabled = true\n", "") + NO_SYNCS)
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    dag = dagbag(monkeypatch).dags["ferry.A.B"]
    assert {task.task_id for task in dag.tasks} == {"plan_run", "prepare_topics", "copy_records", *BESIDE, "report_outcome"}
    assert "copy_records" in dag.get_task("report_outcome").upstream_task_ids


def test_schemas_are_synced_before_the_copy(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only if both clusters have a registry. If the sync fails, no record is copied."""
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG + "A.schema.registry.url = http://a.invalid\nB.schema.registry.url = http://b.invalid\n")
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    dag = dagbag(monkeypatch).dags["ferry.A.B"]
    assert [task.task_id for task in dag.topological_sort()][:4] == [*TASKS[:2], "sync_schemas", "copy_records"]
    assert dag.get_task("sync_schemas").trigger_rule == dag.get_task("copy_records").trigger_rule == "none_failed"
    assert dag.get_task("sync_schemas").downstream_task_ids == {"copy_records", "report_outcome"}


def test_the_check_of_limits_runs_beside_the_report(bag: DagBag) -> None:
    """A limit that is broken, or an event that cannot be sent, fails neither the copy nor the report."""
    for name in BESIDE:
        task = bag.dags["ferry.A.B"].get_task(name)
        assert (task.trigger_rule, task.downstream_task_ids, "copy_records" in task.upstream_task_ids) == ("all_done", set(), True)
    assert [alias.name for alias in bag.dags["ferry.A.B"].get_task("announce_topics").outlets] == ["ferry.A.B.topics"]


def test_every_task_alerts_about_its_failures(bag: DagBag) -> None:
    for dag in bag.dags.values():
        for task in dag.tasks:
            assert task.on_failure_callback, task.task_id
            assert task.on_retry_callback, task.task_id


def test_a_deadline_where_the_config_sets_one(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bag: DagBag) -> None:
    assert bag.dags["ferry.A.B"].deadline is None
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG + "A->B.ferry.alert.deadline.seconds = 90\n")
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    dags = dagbag(monkeypatch).dags
    (deadline,) = dags["ferry.A.B"].deadline or ()
    assert (deadline.interval, deadline.callback.path) == (timedelta(seconds=90), "ferry.airflow.alerts.deadline_missed")
    assert deadline.callback.kwargs == {"config": str(path), "flow": "A->B"}
    assert dags["ferry.B.A"].deadline is None


def test_a_callback_that_leads_nowhere_is_an_import_error(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG + "A->B.ferry.alert.callback = no.such:thing\n")
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    (trace,) = dagbag(monkeypatch).import_errors.values()
    assert f"{path}: ferry.alert.callback of A->B: module no.such cannot be imported" in trace


def test_schedules_have_data_intervals(bag: DagBag) -> None:
    scheduled, manual = bag.dags["ferry.A.B"], bag.dags["ferry.B.A"]
    assert type(scheduled.timetable).__name__ == "CronDataIntervalTimetable"
    assert type(manual.timetable).__name__ == "NullTimetable"
    assert scheduled.is_paused_upon_creation is True
    assert scheduled.catchup is False


def test_the_form_and_the_runbook(bag: DagBag) -> None:
    dag = bag.dags["ferry.A.B"]
    assert set(dag.params) == {"topics", "bound", "dry_run", "follow_seconds"}
    assert all(f"`{name}`" in (dag.doc_md or "") for name in [*TASKS[:3], "sync_…", TASKS[-1]])


def test_the_verify_dag(bag: DagBag, tmp_path: Path) -> None:
    dag = bag.dags["ferry.A.B.verify"]
    compare, report = dag.get_task("compare_copies"), dag.get_task("report_outcome")
    assert [task.task_id for task in dag.topological_sort()] == ["compare_copies", "report_outcome"]
    assert (compare.retries, report.retries, report.trigger_rule) == (3, 0, "all_success")
    assert type(dag.timetable).__name__ == "NullTimetable"
    assert set(dag.params) == {"topics", "from", "until", "digest"}
    assert all(f"`{name}`" in (dag.doc_md or "") for name in ("compare_copies", "report_outcome", "CopiesDiffer"))
    assert f"ferry verify {tmp_path / 'mm2.properties'} --flow 'A->B'" in (dag.doc_md or "")


@pytest.mark.parametrize(("field", "value"), [("from", 7), ("until", []), ("topics", "orders"), ("digest", "crc")])
def test_the_form_of_the_verify_dag_refuses_wrong_values(bag: DagBag, field: str, value: object) -> None:
    params = bag.dags["ferry.A.B.verify"].params
    with pytest.raises(ParamValidationError):
        params[field] = value


def test_wrong_times_fail_at_once() -> None:
    context = {"dag_run": SimpleNamespace(run_id="manual__1"), "params": {"from": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}}
    with pytest.raises(ArgumentError, match="empty"):
        verify_request_of("A->B", context)
    with pytest.raises(ArgumentError, match="yesterday"):
        verify_request_of("A->B", {**context, "params": {"from": "yesterday"}})
    with pytest.raises(ArgumentError, match="digest of the run must be stored or records, not 'crc'"):
        verify_request_of("A->B", {**context, "params": {"digest": "crc"}})
    given = {"from": None, "until": "2026-01-01T00:00:00+01:00", "topics": ["t"], "digest": "records"}
    request = verify_request_of("A->B", {**context, "params": given})
    assert VerifyRequest.from_json(request.to_json()) == request
    assert (request.run_id, request.topics, str(request.until)) == ("manual__1", ("t",), "2026-01-01 00:00:00+01:00")
    assert request.digest == "records"


def test_no_config_means_no_dags(airflow_database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    bag = dagbag(monkeypatch)
    assert (bag.dags, bag.import_errors) == ({}, {})


def test_a_bad_config_is_an_import_error_that_names_the_line(
    airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG + "A->B.topicz = x\n")
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    bag = dagbag(monkeypatch)
    assert bag.dags == {}
    (trace,) = bag.import_errors.values()
    assert f"{path}:10" in trace
    assert "topicz" in trace


def users_dags(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: str) -> DagBag:
    """The DAGs of files of a user's, where Airflow looks for DAGs only in files that name them."""
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(f"from ferry.airflow.dags import flows\n{text}\n")
    return DagBag(dag_folder=str(folder), safe_mode=True)


def test_one_line_of_a_users_file_makes_the_dags(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mm2.properties").write_text(CONFIG)
    bag = users_dags(monkeypatch, tmp_path, ours='flows("mm2.properties")')
    assert bag.import_errors == {}
    assert len(bag.dags) == 10
    dag = bag.dags["ferry.A.B"]
    assert dag.fileloc == str(tmp_path / "ours.py")
    assert dag.get_task("copy_records").flow == FlowReference(tmp_path / "mm2.properties", "A->B")
    assert str(tmp_path / "mm2.properties") in (dag.description or "")
    assert all(f" {tmp_path / 'mm2.properties'} --flow" in (dag.doc_md or "") for dag in bag.dags.values())


def test_the_dags_of_failovers_can_be_left_out(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mm2.properties").write_text(CONFIG)
    bag = users_dags(monkeypatch, tmp_path, ours='flows("mm2.properties", recovery=False)')
    assert set(bag.dags) == {"ferry.A.B", "ferry.A.B.verify", "ferry.B.A", "ferry.B.A.verify"}


def test_the_page_knows_every_task_of_a_recovery(bag: DagBag) -> None:
    script = (Path(ferry.page.__file__).parent / "static" / "recovery.js").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^  (\w+): \"(.*)\",$", script.partition("const STAGES = {")[2].partition("\n};")[0], re.MULTILINE))
    stages = list(shown)
    (questions,) = re.findall(r"const QUESTIONS = (\[.*\]);", script)
    tasks = [task for kind in ("failover", "failback", "cutover") for task in bag.dags[f"ferry.A.B.{kind}"].tasks]
    assert set(stages) == {task.task_id for task in tasks}
    assert set(json.loads(questions)) == {task.task_id for task in tasks if task.task_type == "ApprovalOperator"}
    for task in tasks:
        later = [stages.index(name) for name in task.downstream_task_ids]
        assert all(stages.index(task.task_id) < place for place in later), f"{task.task_id} stands in the order in which tasks run"
    for kind in ("failover", "failback", "cutover"):
        words = [text for name, text in shown.items() if bag.dags[f"ferry.A.B.{kind}"].has_task(name)]
        assert [text for text in words if text in set(Stage)] == list(recovery_stages(kind)), "in the words of the command"


def test_files_side_by_side(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text(CONFIG.replace("B->A.enabled = true", "B->A.enabled = false"))
    (tmp_path / "two").write_text(CONFIG.replace("B", "C"))
    (tmp_path / "three").write_text(CONFIG.replace("B", "D"))
    bag = users_dags(monkeypatch, tmp_path, first='flows("one")\nflows("two")', second='flows("three")')
    assert bag.import_errors == {}
    copying = [dag.get_task("copy_records") for dag in bag.dags.values() if dag.has_task("copy_records")]
    configs = {task.dag_id: task.flow.config.name for task in copying}
    assert configs == {"ferry.A.B": "one", "ferry.A.C": "two", "ferry.C.A": "two", "ferry.A.D": "three", "ferry.D.A": "three"}


def test_several_files_in_the_variable(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text(CONFIG)
    (tmp_path / "two").write_text(CONFIG.replace("B", "C"))
    monkeypatch.setenv("FERRY_CONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    assert {"ferry.A.B", "ferry.A.C"} <= set(dagbag(monkeypatch).dags)
    monkeypatch.setenv("FERRY_CONFIG", f"{tmp_path / 'one'}:{tmp_path / 'one'}")
    assert dagbag(monkeypatch).import_errors == {}
    (tmp_path / "two").write_text(CONFIG)
    monkeypatch.setenv("FERRY_CONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    (problem,) = dagbag(monkeypatch).import_errors.values()
    assert f"flows A->B of {tmp_path / 'one'} and A->B would both have the DAG ferry.A.B" in problem


def test_what_a_file_may_change(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mm2.properties").write_text(CONFIG)
    default_args = '{"owner": "us", "retries": 7, "on_failure_callback": print}'
    given = f'tags=["ours"], pool="spark", queue="large", executor_config={{"pod": 1}}, default_args={default_args}'
    bag = users_dags(monkeypatch, tmp_path, ours=f'flows("mm2.properties", {given})')
    assert bag.import_errors == {}
    for dag in bag.dags.values():
        assert {"ferry", "ours"} <= set(dag.tags)
        for task in dag.tasks:
            starts_spark = isinstance(task, FerrySparkOperator)
            assert (task.pool, task.queue) == (("spark", "large") if starts_spark else ("default_pool", "default"))
            assert task.executor_config == ({"pod": 1} if starts_spark else {})
            assert task.owner == "us"
            assert task.on_failure_callback[-1] is print
            assert len(task.on_failure_callback) == 2, "alerts go on"
    assert (bag.dags["ferry.A.B"].get_task("plan_run").retries, bag.dags["ferry.A.B"].get_task("report_outcome").retries) == (7, 0)
    assert bag.dags["ferry.A.B.failover"].get_task("confirm").retries == 10, "a scheduler that lags makes Airflow ask again"
