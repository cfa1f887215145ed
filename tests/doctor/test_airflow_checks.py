"""Findings about an Airflow, from facts: the one next step, until a run is green."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.doctor.airflow_checks import AGAIN, START, airflow_findings, next_step
from ferry.doctor.airflow_facts import AirflowFacts, DagFacts
from ferry.doctor.finding import Finding, Verdict

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _no_config_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)


NAME, FILE = "ferry.A.B", "/airflow/dags/replication.py"
DAG = DagFacts(NAME, "/etc/mm2.properties", "spark_default", "Airflow's database", "local[2]", seen=True, paused=False)
GREEN = replace(DAG, run="manual__1", state="success")
FACTS = AirflowFacts("3.2.1", home="/airflow", folder="/airflow/dags", files={FILE: "dags-folder"}, dags=(GREEN,))
NEW = AirflowFacts("3.2.1", home="/airflow", folder="/airflow/dags")
UNPAUSE, TRIGGER = f"airflow dags unpause {NAME}", f"airflow dags trigger {NAME}"
CONNECT = "airflow connections add spark_default --conn-type spark --conn-host 'local[2]'"
READ = "airflow dags reserialize --bundle-name dags-folder"
FAILED = replace(DAG, run="manual__2", state="failed", reason="A does not answer", next_step="check that the cluster is up")


def found(facts: AirflowFacts, config: Path | None = None, only: str | None = None) -> list[Finding]:
    return list(airflow_findings(facts, config, only))


def of_dag(**changes: object) -> AirflowFacts:
    return replace(FACTS, dags=(replace(DAG, **changes),))  # type: ignore[arg-type]


def test_a_green_run_leaves_nothing_to_do() -> None:
    assert {entry.verdict for entry in found(FACTS)} == {Verdict.OK}
    assert next_step(found(FACTS)) is None


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (replace(NEW, problem="the database does not answer: no such table: dag"), START),
        (replace(FACTS, silent=("scheduler",)), START),
        (NEW, "mkdir -p /airflow/dags && ferry init /airflow/dags/mm2.properties"),
        (replace(FACTS, errors={FILE: "ConfigError: 3: A->B.topcis"}, dags=()), f"correct what the message names, {AGAIN}"),
        (replace(FACTS, dags=()), "export FERRY_CONFIG=/airflow/dags/mm2.properties, here and for all processes of Airflow"),
        (of_dag(master="", unusable="no such connection", found_in=""), f"{CONNECT} && {TRIGGER}"),
        (of_dag(master="", unusable="spark_default has no host"), "correct the connection spark_default"),
        (of_dag(seen=False, paused=True), f"{READ} && {UNPAUSE} && {TRIGGER}"),
        (of_dag(seen=False, paused=True, master="", found_in=""), f"{CONNECT} && {READ} && {UNPAUSE} && {TRIGGER}"),
        (of_dag(paused=True), f"{UNPAUSE} && {TRIGGER}"),
        (FACTS, None),
        (of_dag(), TRIGGER),
        (of_dag(run="manual__1", state="running"), f"wait until it has ended, {AGAIN}"),
        (replace(FACTS, dags=(FAILED,)), "check that the cluster is up"),
        (of_dag(connection="", master="", found_in="", run="manual__1", state="success"), None),
    ],
)
def test_the_next_step(facts: AirflowFacts, step: str | None) -> None:
    assert next_step(found(facts)) == step


def test_a_file_that_only_this_shell_can_import() -> None:
    facts = replace(of_dag(seen=False, paused=True), import_errors={FILE: "ModuleNotFoundError: No module named 'ferry'"})
    assert str(next_step(found(facts))).startswith("start Airflow's DAG processor again")
    assert "No module named 'ferry'" in next(entry.found for entry in found(facts) if entry.check == "seen")


@pytest.mark.parametrize(
    ("config", "named", "made"), [("/etc/a b.properties", None, '"/etc/a b.properties"'), (None, "/etc/mm2.properties", "")]
)
def test_the_line_of_a_new_dag_file(config: str | None, named: str | None, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if named:
        monkeypatch.setenv("FERRY_CONFIG", named)
    step = next_step(found(NEW, Path(config) if config else None))
    line = f"from ferry.airflow.dags import flows; flows({made})"
    assert step == f"mkdir -p /airflow/dags && echo '{line}' > /airflow/dags/replication.py"


def test_a_config_beside_the_dag_files_is_found(tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").touch()
    assert 'flows("mm2.properties")' in str(next_step(found(replace(NEW, folder=str(tmp_path)))))


@pytest.mark.parametrize(("version", "step"), [("", "pip install 'kafka-ferry[airflow]'"), ("2.10.5", "3.0,<3.4"), ("3.4.0", "3.0,<3.4")])
def test_an_airflow_that_ferry_does_not_run_on(version: str, step: str) -> None:
    told = found(replace(NEW, version=version))
    assert step in str(next_step(told))
    assert len(told) == 1, "nothing else is known"


@pytest.mark.parametrize("version", ["3.0.0", "3.3.2"])
def test_an_airflow_that_ferry_runs_on(version: str) -> None:
    assert next_step(found(replace(FACTS, version=version))) is None


@pytest.mark.parametrize("others", [(GREEN,), (replace(DAG, run="manual__1", state="running"),)])
def test_only_one_flow_must_have_a_green_run(others: tuple[DagFacts, ...]) -> None:
    idle = replace(DAG, dag_id="ferry.A.C", paused=True, master="", found_in="")
    told = found(replace(FACTS, dags=(idle, *others)))
    assert {entry.verdict for entry in told if entry.where == "DAG ferry.A.C"} == {Verdict.WARNING, Verdict.OK}
    failed = next(entry.verdict for entry in found(replace(FACTS, dags=(FAILED, GREEN))) if entry.check == "last run")
    assert failed is Verdict.FAILURE, "a run that failed stays a failure"


def test_an_airflow_that_fetches_its_bundles() -> None:
    step = next_step(found(replace(NEW, folder="")))
    assert step is not None
    assert step.startswith("add a file with `from ferry.airflow.dags import flows;")


def test_one_flow_alone() -> None:
    both = replace(FACTS, dags=(GREEN, replace(FAILED, dag_id="ferry.B.A")))
    assert next_step(found(both, only="A->B")) is None
    assert next_step(found(both, only="B->A")) == FAILED.next_step
    assert "A->C" in str(next_step(found(both, only="A->C")))


def test_a_dag_whose_file_is_elsewhere_is_not_called_wrong() -> None:
    told = found(replace(FACTS, files={}, dags=(DagFacts(NAME, seen=True, paused=False, run="scheduled__1", state="success"),)))
    assert [entry.check for entry in told if entry.verdict is not Verdict.OK] == ["Spark connection"]
    assert next_step(told) is None
