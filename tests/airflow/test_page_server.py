"""What the api-server itself knows for the page: the config's flows, Airflow's connections, and which packages it never loads."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from ferry.copying.request import RunRequest, epoch_milliseconds
from ferry.errors import ArgumentError, ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in conftest.py: Airflow and its dependencies warn about each other
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    from ferry.airflow import page_flows
    from ferry.airflow.connections import connection_fields
    from ferry.airflow.flows import FlowReference
    from ferry.airflow.page_flows import ServerFlows, tell_no_dags, tell_unnamed, unnamed_dags
    from ferry.airflow.plugin import FerryPagePlugin
    from ferry.airflow.steps import request_of

pytestmark = pytest.mark.airflow

TOPIC = "orders"


def written(path: Path, *lines: str) -> Path:
    given = ["clusters = A, B", "B.bootstrap.servers = b:9092", "A->B.enabled = true", *lines]
    path.write_text("\n".join(given), encoding="latin-1")
    return path


@pytest.mark.parametrize("where", ["database", "environment"])
def test_one_rule_for_connections_in_every_process(
    airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A Spark driver cannot ask Airflow's database. So the page does not either: it would show a flow as healthy whose runs fail."""
    password, name = secrets.token_hex(8), f"kafka_{where}"
    extra = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    stored = Connection(name, "kafka", host="a.example", port=9093, login="ferry", password=password, extra=json.dumps(extra))
    if where == "database":
        with create_session() as session:
            session.add(stored)
    else:
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", stored.as_json())
    monkeypatch.setenv("FERRY_CONFIG", str(written(tmp_path / "mm2.properties", f"A.ferry.airflow.connection = {name}")))
    flows = ServerFlows()
    if where == "database":
        with pytest.raises(ConfigError, match=r"AIRFLOW_CONN_KAFKA_DATABASE.* not in Airflow's database"):
            flows.resolve("A->B")
        return
    assert connection_fields(name).password == password
    (facts,) = flows.known().flows
    assert facts.flow == "A->B"
    flow = flows.resolve("A->B")
    assert flow.source.bootstrap == "a.example:9093"
    assert flow.source.user_name == "ferry"
    assert password not in repr(flow) + repr(flows.known())


def test_a_missing_connection_is_told_where_the_flow_is_shown(
    airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRY_CONFIG", str(written(tmp_path / "mm2.properties", "A.ferry.airflow.connection = nowhere")))
    flows = ServerFlows()
    assert [facts.flow for facts in flows.known().flows] == ["A->B"]
    assert flows.known().problem is None
    with pytest.raises(ConfigError, match="Airflow connection nowhere was not found"):
        flows.resolve("A->B")


@pytest.mark.parametrize("variable", [{}, {"FERRY_CONFIG": "/does/not/exist"}])
def test_without_a_config_the_page_says_so(monkeypatch: pytest.MonkeyPatch, variable: Mapping[str, str]) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    found = ServerFlows().known()
    assert found.flows == ()
    assert found.problem is not None
    assert found.problem.error == "ConfigError"
    assert found.problem.message.startswith("FERRY_CONFIG" if not variable else "/does/not/exist")


def test_the_page_shows_the_flows_of_every_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = written(tmp_path / "first", "A.bootstrap.servers = a:9092"), tmp_path / "second"
    second.write_text("clusters = C, B\nC.bootstrap.servers = c:9092\nB.bootstrap.servers = b:9092\nC->B.enabled = true\n")
    monkeypatch.setenv("FERRY_CONFIG", f"{first}:{second}")
    flows = ServerFlows()
    assert ([facts.flow for facts in flows.known().flows], flows.known().problem) == (["A->B", "C->B"], None)
    assert flows.resolve("C->B").source.bootstrap == "c:9092"
    with pytest.raises(ArgumentError, match="has an enabled flow D->B"):
        flows.resolve("D->B")
    second.unlink()
    flows._read_at = None
    known = flows.known()
    assert [facts.flow for facts in known.flows] == ["A->B", "C->B"], "those of the last good read stay"
    assert str(second) in (known.problem.message if known.problem else "")


def test_a_file_that_is_wrong_stops_no_flow_of_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = written(tmp_path / "first", "A.bootstrap.servers = a:9092"), tmp_path / "second"
    second.write_text("clusters = C, B\nC->B.enabled = perhaps\n")
    monkeypatch.setenv("FERRY_CONFIG", f"{second}:{first}")
    flows = ServerFlows()
    assert flows.resolve("A->B").source.bootstrap == "a:9092"
    with pytest.raises(ConfigError, match=str(second)):  # it may be there
        flows.resolve("C->B")


def test_flows_of_dag_files_that_nobody_named_for_the_page_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CONFIG", str(written(tmp_path / "mm2.properties", "A.bootstrap.servers = a:9092")))
    dags = {"ferry.A.B": "", "ferry.A.B.verify": "", "ferry.C.D": "Copies, as /team/x.properties says", "ferry.C.D.cutover": ""}
    unnamed = unnamed_dags(ServerFlows().known(), dags)
    assert unnamed == {"ferry.C.D": "Copies, as /team/x.properties says"}
    problem = tell_unnamed(unnamed)
    assert problem is not None
    assert "ferry.C.D (Copies, as /team/x.properties says)" in problem.message
    assert "FERRY_CONFIG" in problem.next_step
    assert tell_unnamed({}) is None
    many = tell_unnamed({f"ferry.{number}": "" for number in range(7)})
    assert many is not None
    assert many.message.endswith("and 2 more")
    # The file that cannot be read may hold them.
    monkeypatch.setenv("FERRY_CONFIG", "/no/such/file")
    assert unnamed_dags(ServerFlows().known(), dags) == {}


def test_flows_that_have_no_dag_because_there_is_no_spark_provider_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CONFIG", str(written(tmp_path / "mm2.properties", "A.bootstrap.servers = a:9092")))
    flows = ServerFlows().known().flows
    assert tell_no_dags(flows, {}) is None, "it is installed"
    monkeypatch.setattr(page_flows, "is_there", lambda _: False)
    problem = tell_no_dags(flows, {"ferry.C.D": ""})
    assert problem is not None
    assert problem.message.startswith("Airflow has no DAG of A->B, and no Spark provider is installed here")
    assert "pip install apache-airflow-providers-apache-spark" in problem.next_step
    assert tell_no_dags(flows, {"ferry.A.B": ""}) is None, "another process of Airflow has it"


def test_a_page_that_cannot_be_loaded_does_not_stop_the_server(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "ferry.airflow.page", None)
    assert FerryPagePlugin().fastapi_apps == []
    assert "there is no Ferry page" in caplog.text


def test_a_manual_run_with_a_gaps_interval_asks_for_just_that() -> None:
    """What tests/page/test_coverage_on_brokers.py shows to close a gap is what such a DAG run does."""
    since, until = (datetime.fromtimestamp(moment / 1000, UTC) for moment in (1_790_000_000_123, 1_790_000_000_457))
    context = {
        "dag_run": SimpleNamespace(run_id="manual__1", run_type="manual"),
        "params": {"bound": "interval", "topics": [TOPIC]},
        "data_interval_start": since,
        "data_interval_end": until,
    }
    asked = request_of(FlowReference(Path("mm2.properties"), "A->B"), context)
    assert asked == RunRequest("A->B", "manual__1", since=since, until=until, backfill=True, topics=(TOPIC,))
    assert epoch_milliseconds(until) == 1_790_000_000_457


def loaded_by(program: str, before: str = "") -> set[str]:
    """Top-level packages that `program` loads in a new process, beyond those of `before`."""
    names = "{name.split('.')[0] for name in sys.modules}"
    script = f"import sys, json\n{before}\nthere = {names}\n{program}\nprint(json.dumps(sorted({names} - there)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_no_kafka_client_is_loaded_in_a_server() -> None:
    assert not loaded_by("import ferry.airflow.page as page; page.page_app()") & {"confluent_kafka", "kafka", "pyspark"}


def test_a_task_loads_next_to_nothing_of_the_plugin() -> None:
    program = "import ferry.airflow.plugin"
    assert not loaded_by(program, before="import airflow.plugins_manager") & {"fastapi", "croniter", "cryptography"}


def test_an_airflow_with_this_plugins_folder_loads_the_page_once(airflow_database: None) -> None:
    """The installed package registers the same plugin; Airflow takes a name once."""
    command = [str(Path(sys.executable).with_name("airflow")), "plugins", "--output", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    assert [entry["source"] for entry in found if entry["name"] == "ferry_page"] == ["$PLUGINS_FOLDER/ferry_page.py"]
