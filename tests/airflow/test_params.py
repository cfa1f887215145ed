"""Every parameter of every DAG has a schema, and the first task refuses what Airflow let through before it reads or writes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException

from ferry.airflow import steps
from ferry.airflow.flows import FlowReference
from ferry.airflow.params import run_params, trigger_params
from ferry.airflow.verify_dag import verify_params, verify_request_of
from ferry.config import load_config
from ferry.errors import ArgumentError

pytestmark = pytest.mark.airflow

CONFIG = """\
clusters = A, B
A.bootstrap.servers = nowhere.invalid:9092
B.bootstrap.servers = elsewhere.invalid:9092
A->B.enabled = true
B->A.enabled = true
"""
HOSTILE = "$(touch /tmp/never); `id` ' \" \n {{ 7 * 7 }}"
# Values that no parameter of any kind takes, and more for some of them.
NEVER: tuple[Any, ...] = (HOSTILE, 7, {"a": 1}, [HOSTILE], [["t"]], [1], "")
BAD = {
    "topics": ["a topic", ["ok", "not ok"], ["a" * 250], [".."], [None]],
    "bound": ["LATEST", "2024-01-01", ["latest"], True, None],
    "dry_run": ["yes", 1, "true", None, []],
    "follow_seconds": [-1, "30m", 1.5, True, 7 * 24 * 3600],
}


@pytest.fixture
def dags(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    monkeypatch.setenv("FERRY_CONFIG", str(path))
    bag = DagBag(dag_folder=str(Path(__file__).parents[2] / "dags"))
    assert bag.import_errors == {}
    return dict(bag.dags)


def test_every_parameter_has_a_schema_that_refuses_wrong_values(dags: dict[str, Any]) -> None:
    names = set()
    for dag in dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            names.add(name)
            assert param.schema.get("type"), f"{dag.dag_id}: {name}"
            assert param.description, f"{dag.dag_id}: {name}"
            param.resolve()  # its default is good
            for value in NEVER:
                if _may_be_meant(name, value):
                    continue
                with pytest.raises(Exception, match=r"Failed validating|Invalid input for param"):
                    param.resolve(value)
    assert {*BAD, "from", "until"} <= names


def _may_be_meant(name: str, value: Any) -> bool:
    """A regular expression is any text, until the task compiles it; seconds are a number."""
    return (name == "groups" and isinstance(value, str)) or (name in {"quiet_seconds", "follow_seconds"} and isinstance(value, int))


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, bad in BAD.items() for value in (*bad, *(one for one in NEVER if not _may_be_meant(name, one)))],
)
def test_a_bad_value_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=f"^parameter {name} of the run must be "):
        run_params({"params": {name: value}})


TIMES = ["yesterday", "2024-13-01T00:00:00Z", 1_700_000_000, True, [], {}, HOSTILE, ""]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ("from", "until") for value in TIMES])
def test_a_bad_time_of_a_verify_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=f"^parameter {name} of the run must be an ISO time"):
        verify_request_of("A->B", {"params": {name: value}, "dag_run": None})


def test_the_first_task_of_a_verify_refuses_before_it_reads_anything(dags: dict[str, Any]) -> None:
    task = dags["ferry.A.B.verify"].get_task("compare_copies")
    task.flow.config.unlink()
    with pytest.raises(AirflowFailException, match="ArgumentError: parameter topics of the run"):
        task.execute({"params": {"topics": [HOSTILE]}, "dag_run": None})


def test_the_error_of_an_unknown_parameter_suggests_a_known_one() -> None:
    with pytest.raises(ArgumentError, match=r"^parameter 'topcis' of the run is not known; did you mean topics\?$"):
        run_params({"params": {"topcis": ["t"]}})


def test_the_first_task_refuses_before_it_reads_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "get_current_context", lambda: {"params": {"topics": [HOSTILE]}, "dag_run": None})
    with pytest.raises(AirflowFailException, match="ArgumentError: parameter topics of the run must be a list of topic names"):
        steps.plan(FlowReference(Path("/no/such/file"), "A->B"))  # reading the config would be another error


@pytest.mark.parametrize(("topics", "offered"), [("orders, pay.ments", ["orders", "pay.ments"]), ("orders, pay.*", None), (".*", None)])
def test_the_form_offers_the_topics_that_the_config_names(tmp_path: Path, topics: str, offered: list[str] | None) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(f"{CONFIG}A->B.topics = {topics}\n")
    flow = load_config(path).flow("A->B")
    for form in (trigger_params(flow), verify_params(flow)):
        assert form["topics"].schema.get("examples") == offered


@pytest.mark.parametrize("schedule", ["", "A->B.ferry.schedule = 0 3 * * *\n"])
def test_the_form_says_why_airflow_offers_no_backfill(tmp_path: Path, schedule: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG + schedule)
    form = trigger_params(load_config(path).flow("A->B"))
    assert ("Airflow's Backfill is off because the flow has no ferry.schedule" in form["bound"].description) is not bool(schedule)


def test_good_values_are_taken() -> None:
    taken = run_params({"params": {"topics": ["a.b-c_D", "x" * 249], "bound": "interval", "dry_run": True}})
    assert (taken.topics, taken.bound, taken.dry_run) == (("a.b-c_D", "x" * 249), "interval", True)
    assert run_params({"params": {"topics": None}}) == run_params({"params": None})
    assert [run_params({"params": {"follow_seconds": given}}).follow_seconds for given in (None, 0, 900)] == [None, 0, 900]
