"""The Ferry page's routes in Airflow's own api-server app: who gets in, who sees what, who may do what."""

from __future__ import annotations

import json
import re
import secrets
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fastapi import FastAPI
from fastapi.routing import APIRoute
from sqlalchemy import delete, update
from starlette.routing import Mount
from tests.both_clusters import both_clusters
from tests.opened import assemble_report, copy_run, keep_lag, keep_run, plan_run, prepare_run, status_after_run
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets

from ferry.airflow.page_docs import DOCS
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ConfigError
from ferry.ledger.run_summary import RunLag
from ferry.monitoring.runs_reading import read_runs
from ferry.page.documents import RIGHTS
from ferry.page.problem import problem_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in conftest.py: Airflow and its dependencies warn about each other
    from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
    from airflow.models.dag import DagModel, DagTag
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunType
    from fastapi.testclient import TestClient

    import ferry.airflow.page
    from ferry.airflow import steps
    from ferry.airflow.flows import FlowReference
    from ferry.airflow.page_flows import Known

pytestmark = [pytest.mark.airflow, pytest.mark.brokers]

ROLES = {"vic": "viewer", "una": "user", "ops": "op", "admin": "admin"}
PASSWORDS = {name: secrets.token_urlsafe(9) for name in ROLES}
TOPIC, GROUP, DAG = "orders", "billing", "ferry.A.B"
RECORDS = 30


@dataclass
class Page:
    """The app, a flow A->B that has run, and a flow of another DAG, C->B, whose source is down."""

    app: FastAPI
    client: TestClient
    mounted: FastAPI
    flow: Flow
    reference: FlowReference

    def headers(self, user: str) -> dict[str, str]:
        answer = self.client.post("/auth/token", json={"username": user, "password": PASSWORDS[user]})
        return {"Authorization": f"Bearer {answer.json()['access_token']}"}

    def routes(self) -> list[tuple[str, set[str]]]:
        """Path with example parameters, and methods, of every route that the app has."""
        found = []
        for route in self.mounted.routes:
            assert isinstance(route, APIRoute), f"{route} demands no login that a test could see"
            path = route.path.replace("docs/{path:path}", "docs/index.md").replace("{path:path}", "index.html")
            assert "{" not in path, f"{path} needs an example here"
            names = {field.name for dependant in _dependants(route.dependant) for field in dependant.query_params}
            known = {"flow": "A->B", "topic": TOPIC, "group": GROUP}
            query = "&".join(f"{name}={value.replace('>', '%3E')}" for name, value in known.items() if name in names)
            found.append((f"/ferry{path}?{query}", set(route.methods)))
        return found

    def get(self, path: str, user: str = "admin", **params: Any) -> dict[str, Any]:
        """The answer once everything that was never read has been."""
        found: dict[str, Any] = {}

        def read() -> bool:
            answer = self.client.get(f"/ferry/api/{path}", params=params, headers=self.headers(user))
            assert answer.status_code == 200, answer.text
            found.clear()
            found.update(answer.json())
            return not found.get("refreshing") or bool(found.get("problem"))

        until(read, lambda: found)
        return found


def _dependants(dependant: Any) -> Iterator[Any]:
    yield dependant
    for inner in dependant.dependencies:
        yield from _dependants(inner)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SandboxCluster, SandboxCluster]]:
    directory = tmp_path_factory.mktemp("page")
    with both_clusters(directory) as (source, target):
        config = directory / "mm2.properties"
        lines = [
            "clusters = A, B, C",
            f"A.bootstrap.servers = {source.bootstrap}",
            f"B.bootstrap.servers = {target.bootstrap}",
            "C.bootstrap.servers = 127.0.0.1:1",
            "replication.factor = 1",
            "ferry.internal.topics.replication.factor = 1",
            "A->B.enabled = true",
            f"A->B.topics = {TOPIC}",
            "A->B.ferry.start = latest",
            "A->B.ferry.schedule = 0 * * * *",
            "A->B.sync.group.offsets.enabled = true",
            "C->B.enabled = true",
            "emit.heartbeats.enabled = false",
        ]
        config.write_text("\n".join(lines), encoding="latin-1")
        yield config, source, target


def fill(cluster: SandboxCluster) -> None:
    producer = Producer(cluster.client_settings())
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def run(flow: Flow, run_id: str) -> None:
    request = RunRequest(flow.name, run_id)
    planned = plan_run(flow, request)
    prepare_run(flow, request, spark_follows=planned.needs_copy)
    if planned.needs_copy:
        copy_run(flow, request, InlineLaneRunner(), lambda _: None)
    report = assemble_report(flow, request)
    assert keep_run(flow, report, status_after_run(flow, report).lag.of_run) == ""


@pytest.fixture(scope="module")
def page(
    airflow_database: None, stage: tuple[Path, SandboxCluster, SandboxCluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    config, source, _ = stage
    with create_session() as session:  # tests of other modules leave their DAGs
        session.execute(delete(DagTag).where(DagTag.name == "ferry"))
    passwords = tmp_path_factory.mktemp("airflow") / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS), encoding="utf-8")
    client = AdminClient(source.client_settings())
    client.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
    fill(source)
    flow = load_config(config).flow("A->B")
    run(flow, "first")
    fill(source)
    run(flow, "second")
    commit_offsets(source.client_settings(), GROUP, {(TOPIC, number): 20 for number in range(2)})
    settings = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in ROLES.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "FERRY_CONFIG": str(config),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        purge_cached_app()
        app = create_app(apps="core")
        (mount,) = [route for route in app.routes if isinstance(route, Mount) and route.path == "/ferry"]
        assert isinstance(mount.app, FastAPI)
        with TestClient(app) as browser:
            yield Page(app, browser, mount.app, flow, FlowReference(config, flow.name))
        for reader in mount.app.state.service._readers._idle:
            reader.end()
        purge_cached_app()


def test_every_route_demands_a_login_and_none_writes(page: Page) -> None:
    routes = page.routes()
    assert len(routes) >= 15
    for path, methods in routes:
        assert methods <= {"GET", "HEAD"}, path
        assert page.client.get(path).status_code == 401, path
        assert page.client.get(path.split("?")[0]).status_code == 401, "a login comes before parameters"
        assert page.client.get(path, headers={"Authorization": "Bearer forged"}).status_code in {401, 403}, path
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = page.client.request(method, path, headers=page.headers("admin"))
            assert answer.status_code == 405, (method, path)
    for path in ("/ferry/redoc", "/ferry/openapi.json", "/ferry/api/nothing", "/ferry/static", "/ferry/static/../page.py"):
        answer = page.client.get(path, headers=page.headers("admin"), follow_redirects=False)
        assert answer.status_code in {307, 404}, path
        assert answer.headers.get("location", "/ferry/").rpartition("://")[2].partition("/")[2].startswith("ferry"), path


@pytest.mark.parametrize(("user", "acts"), [("vic", False), ("una", True), ("ops", True), ("admin", True)])
def test_a_viewer_gets_every_answer_and_no_action(page: Page, user: str, acts: bool) -> None:
    headers = page.headers(user)
    for path, _ in page.routes():
        answer = page.client.get(path, headers=headers, follow_redirects=False)
        assert answer.status_code in ({200} if "/api/" in path else {200, 307, 404}), (path, answer.text)
        assert answer.headers.get("cache-control") == "no-store" or "/api/" not in path
    for flow in page.get("overview", user)["flows"]:
        assert {name: flow[name] for name in RIGHTS} == dict.fromkeys(RIGHTS, acts)
    assert page.get("coverage", user, flow="A->B", topic=TOPIC)["may_trigger"] is acts


@pytest.mark.parametrize(("user", "acts"), [("vic", False), ("una", True), ("ops", True)])
def test_airflow_itself_decides_who_changes_something(page: Page, user: str, acts: bool) -> None:
    """The calls of the page's buttons. Who sees a button may make its call: here all DAGs and runs are unknown, so that nothing changes."""
    run = f"/api/v2/dags/{DAG}/dagRuns/nothing"
    calls = [
        ("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": True}),
        ("PATCH", run, {"state": "failed", "note": "x"}),
        ("POST", f"{run}/clear", {"dry_run": False, "only_failed": False}),
    ]
    for method, path, body in calls:
        assert page.client.request(method, path, json=body, headers=page.headers(user)).status_code == (404 if acts else 403), path


def test_the_dags_of_recovery_are_told_where_airflow_has_them(page: Page) -> None:
    def told(user: str) -> list[tuple[str, bool, bool]]:
        return [(entry["kind"], entry["there"], entry["may_trigger"]) for entry in page.get("recovery", user, flow="A->B")["recoveries"]]

    assert told("admin") == [(kind, False, False) for kind in ("failover", "failback", "cutover")]
    name = f"{DAG}.failover"
    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        session.add(DagModel(dag_id=name, bundle_name="dags-folder", is_stale=False))
        session.flush()
        session.add(DagTag(dag_id=name, name="ferry"))
    try:
        assert told("admin")[0] == ("failover", True, True)
        assert told("vic")[0] == ("failover", True, False)
        (failover, *_) = page.get("recovery", flow="A->B")["recoveries"]
        assert (failover["runs"], failover["command"]) == ([], f"ferry failover {page.flow.source.path.name} --flow 'A->B'")
    finally:
        with create_session() as session:
            for kind in (DagTag, DagModel):
                session.execute(delete(kind).where(kind.dag_id == name))


def test_the_config_in_force_is_told_without_secrets(page: Page) -> None:
    found = page.get("config", "vic", flow="A->B")
    rows = {(row["of"], row["name"]): row for row in found["properties"]}
    assert found["file"] == page.flow.source.path.name
    assert (rows["A->B", "topics"]["value"], rows["A->B", "topics"]["key"]) == (TOPIC, "A->B.topics")
    assert rows["A", "bootstrap.servers"]["line"] > 0


def test_a_user_sees_a_flow_only_if_the_user_may_read_its_dag(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = get_auth_manager()
    allowed = manager.is_authorized_dag

    def restricted(*, user: Any, details: Any = None, **more: Any) -> bool:
        return allowed(user=user, details=details, **more) and not (user.get_name() == "vic" and details.id == DAG)

    monkeypatch.setattr(manager, "is_authorized_dag", restricted)
    headers = page.headers("vic")
    for path, _ in page.routes():
        answer = page.client.get(path, headers=headers, follow_redirects=False)
        if "flow=" in path:
            assert answer.status_code == 403, path
            assert answer.json() == {"detail": f"reading DAG {DAG} is not allowed"}
        assert TOPIC not in answer.text, path
    shown = page.get("overview", "vic")
    assert [flow["flow"] for flow in shown["flows"]] == ["C->B"]
    assert shown["clusters"] == [{"alias": "B"}, {"alias": "C"}]
    assert len(page.get("overview", "ops")["flows"]) == 2


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("topics", 422),
        ("topics?flow=A-%3EX", 404),
        ("topics?flow=A-%3EB&limit=501", 422),
        ("topics?flow=A-%3EB&offset=-1", 422),
        ("topics?flow=A-%3EB&sort=password", 422),
        ("coverage?flow=A-%3EB", 422),
        ("history?flow=A-%3EB&days=0", 422),
        ("partitions?flow=A-%3EB&topic=" + "x" * 250, 422),
    ],
)
def test_bad_parameters_are_refused(page: Page, path: str, status: int) -> None:
    answer = page.client.get(f"/ferry/api/{path}", headers=page.headers("admin"))
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_the_map_shows_every_flow_and_a_dead_cluster_hides_no_other(page: Page) -> None:

    def flows_seen() -> dict[str, Any]:
        return {flow["flow"]: flow for flow in page.get("overview")["flows"]}

    until(lambda: (seen := flows_seen())["A->B"]["totals"] and seen["C->B"]["problem"], flows_seen)
    flows = flows_seen()
    good, dead = flows["A->B"], flows["C->B"]
    assert (good["health"], good["reasons"], good["dag_id"], good["verify_dag_id"]) == ("healthy", [], DAG, f"{DAG}.verify")
    assert (good["totals"]["topics"], good["totals"]["partitions"], good["totals"]["lag_records"]) == (1, 2, 0)
    assert (good["last_run"]["run_id"], good["last_run"]["records"]) == ("second", RECORDS)
    assert (dead["health"], dead["totals"], dead["problem"]["error"]) == ("unreachable", None, "ClusterUnreachable")
    assert dead["problem"]["next_step"]
    assert dead["reasons"][0].startswith("cluster C does not answer (127.0.0.1:1")


def test_the_views_tell_what_the_flow_did(page: Page) -> None:
    topics = page.get("topics", flow="A->B")
    assert [(row["topic"], row["remote_topic"], row["partitions"]) for row in topics["topics"]] == [(TOPIC, f"A.{TOPIC}", 2)]
    assert topics["age_seconds"] < NEVER_SECONDS
    rows = page.get("partitions", flow="A->B", topic=TOPIC)["partitions"]
    assert [(row["position"], row["log_start"]) for row in rows] == [(RECORDS, 0)] * 2
    coverage = page.get("coverage", flow="A->B", topic=TOPIC)
    assert [(gap["partition"], gap["start"], gap["end"]) for gap in coverage["missing"]] == [(0, 0, 15), (1, 0, 15)]
    assert coverage["dag_id"] == DAG
    assert [run["run_id"] for run in page.get("runs", flow="A->B")["runs"] if run["airflow_state"] is None] == ["second", "first"]
    points = page.get("history", flow="A->B")["points"]
    assert [(point["run_id"], point["records"], point["lag_records"]) for point in points] == [("first", 0, 0), ("second", RECORDS, 0)]
    groups = page.get("groups", flow="A->B", search="BILL")
    assert [(row["group"], row["partitions"], row["exact"], row["lag_source"]) for row in groups["groups"]] == [(GROUP, 2, 2, 20)]
    assert groups["groups"][0]["decision"] == "write"
    group = page.get("group", flow="A->B", group=GROUP)
    assert {entry["translated"] for entry in group["partitions"]} == {5}
    assert page.get("group", flow="A->B", group="nobody")["problem"]["error"] == "ArgumentError"
    drift = page.get("drift", flow="A->B")
    assert drift["totals"] == {"topics": 0, "schemas": 0, "configs": 0, "acls": 0}
    assert page.get("verify", flow="A->B")["reports"] == []
    losses = page.get("losses", flow="A->B")
    assert (losses["losses"], losses["command"]) == ([], f"ferry ack-loss {page.flow.source.path.name} --flow 'A->B'")
    assert page.get("transactions", flow="A->B")["open_transactions"] == []
    progress = page.get("progress", flow="A->B")
    assert (progress["run_id"], progress["text"], progress["share"], progress["problem"]) == (None, "", None, None)


@pytest.mark.parametrize(
    ("run_type", "conf", "state", "fills"),
    [
        (DagRunType.MANUAL, {"bound": "interval", "topics": [TOPIC]}, DagRunState.QUEUED, True),
        (DagRunType.BACKFILL_JOB, None, DagRunState.QUEUED, True),
        (DagRunType.MANUAL, {"bound": "interval", "topics": ["others"]}, DagRunState.QUEUED, False),
        (DagRunType.MANUAL, {"topics": [TOPIC]}, DagRunState.QUEUED, False),
        (DagRunType.MANUAL, {"bound": "interval"}, DagRunState.SUCCESS, False),
        (DagRunType.MANUAL, {"bound": "interval", "dry_run": True}, DagRunState.QUEUED, False),
    ],
)
def test_the_runs_that_copy_what_is_missing(page: Page, run_type: DagRunType, conf: Any, state: DagRunState, fills: bool) -> None:
    now = datetime.now(UTC)
    run = DagRun(dag_id=DAG, run_id="filling", run_type=run_type, state=state, conf=conf, queued_at=now, run_after=now)
    run.end_date = now if state == DagRunState.SUCCESS else None
    with create_session() as session:
        session.add(run)
    try:
        filling = page.get("coverage", flow="A->B", topic=TOPIC)["filling"]
    finally:
        with create_session() as session:
            session.execute(delete(DagRun).where(DagRun.run_id == "filling"))
    told = {"run_id": "filling", "state": "queued", "url": f"/dags/{DAG}/runs/filling"}
    assert [{**told, **run} for run in filling] == filling
    assert bool(filling) is fills


def test_dag_runs_are_in_the_list(page: Page) -> None:
    """One that died before it could write anything to the target is known to Airflow alone."""
    now = datetime.now(UTC)
    with create_session() as session:
        session.add(
            DagRun(
                dag_id=DAG,
                run_id="manual__1+x",
                run_type=DagRunType.MANUAL,
                state=DagRunState.FAILED,
                start_date=now,
                queued_at=now,
                run_after=now,
            )
        )
    newest = page.get("runs", flow="A->B", limit=1)["runs"][0]
    assert (newest["run_id"], newest["state"], newest["airflow_state"], newest["records"]) == ("manual__1+x", "failed", "failed", None)
    assert newest["dag_run_url"] == f"/dags/{DAG}/runs/manual__1%2Bx"
    flow = next(flow for flow in page.get("overview")["flows"] if flow["flow"] == "A->B")
    assert flow["health"] == "failing"
    assert [reason.startswith("the last run failed") for reason in flow["reasons"]] == [True]
    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id == "manual__1+x").delete()


def test_a_paused_dag_and_a_run_that_waits_are_told(page: Page) -> None:
    now = datetime.now(UTC)
    waits = DagRun(dag_id=DAG, run_id="waits", run_type=DagRunType.MANUAL, state=DagRunState.QUEUED, queued_at=now, run_after=now)

    def told() -> tuple[str, list[str]]:
        flow = next(flow for flow in page.get("overview")["flows"] if flow["flow"] == "A->B")
        return flow["health"], flow["reasons"]

    with create_session() as session:
        session.add(DagBundleModel(name="of the test"))
        session.flush()
        session.add_all([DagModel(dag_id=DAG, bundle_name="of the test", is_paused=True), waits])
    try:
        health, (paused, queued) = told()
        assert (health, paused) == ("paused", "its DAG is paused, so no run starts")
        assert queued.startswith("run waits was queued ")
        with create_session() as session:
            session.execute(update(DagModel).where(DagModel.dag_id == DAG).values(is_paused=False))
        assert told()[0] == "queued"
        assert page.get("runs", flow="A->B", limit=1)["runs"][0]["state"] == "queued"
    finally:
        with create_session() as session:
            session.execute(delete(DagRun).where(DagRun.run_id == "waits"))
            session.execute(delete(DagModel).where(DagModel.dag_id == DAG))
            session.execute(delete(DagBundleModel).where(DagBundleModel.name == "of the test"))
    assert told() == ("healthy", [])


def test_the_browsers_cookie_is_a_login_for_files_too(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.js").write_text("1", encoding="ascii")
    (tmp_path.parent / "secret.txt").write_text("no", encoding="ascii")
    monkeypatch.setattr(ferry.airflow.page, "_static", type(ferry.airflow.page._static)(directory=tmp_path))
    token = page.headers("vic")["Authorization"].removeprefix("Bearer ")
    with TestClient(page.app, cookies={"_token": token}) as browser:
        answer = browser.get("/ferry/static/app.js")
        assert (answer.status_code, answer.text) == (200, "1")
        assert browser.get("/ferry/static/app.js", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        assert browser.get("/ferry/api/overview").json()["flows"]
        for path in ("../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "%2e%2e%2fsecret.txt"):
            assert browser.get(f"/ferry/static/{path}").status_code == 404, path


def test_the_documentation_can_be_read_where_no_checkout_is(page: Page) -> None:
    headers = page.headers("vic")
    for path in DOCS.glob("*.md"):
        answer = page.client.get(f"/ferry/docs/{path.name}", headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        for name, anchor in re.findall(r'href="([a-z-]*\.md|)#([^"]+)"', answer.text):
            target = page.client.get(f"/ferry/docs/{name or path.name}", headers=headers).text
            assert f'id="{anchor}"' in target, f"{path.name} names {name}#{anchor}"
    assert page.client.get("/ferry/docs/", headers=headers).text == page.client.get("/ferry/docs/index.md", headers=headers).text
    assert page.client.get("/ferry/docs/images/overview.png", headers=headers).headers["content-type"] == "image/png"
    for wrong in ("nothing.md", "../README.md", "..%2fREADME.md", "%2e%2e/pyproject.toml", "images"):
        assert page.client.get(f"/ferry/docs/{wrong}", headers=headers).status_code == 404, wrong


def test_a_config_that_breaks_keeps_what_was_known(page: Page, stage: tuple[Path, SandboxCluster, SandboxCluster]) -> None:
    config, flows = stage[0], page.mounted.state.flows
    good = config.read_text(encoding="latin-1")
    try:
        config.write_text(good + "\nA->B.ferry.lanes = many\n", encoding="latin-1")
        flows._read_at = None
        found = page.get("overview")
        assert found["problem"]["error"] == "ConfigError"
        assert "ferry.lanes" in found["problem"]["message"]
        assert [flow["flow"] for flow in found["flows"]] == ["A->B", "C->B"]
    finally:
        config.write_text(good, encoding="latin-1")
        flows._read_at = None
    assert page.get("overview")["problem"] is None


def test_only_users_who_may_see_import_errors_see_why_there_are_no_flows(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Known((), problem_of(ConfigError("line 3: unknown key A->B.secret.name")))
    monkeypatch.setattr(page.mounted.state.flows, "known", lambda: unread)
    assert page.get("overview")["problem"]["error"] == "ConfigError"
    monkeypatch.setattr(get_auth_manager(), "is_authorized_view", lambda **_: False)
    assert page.get("overview", "vic")["problem"] is None


def test_a_dag_whose_file_is_not_named_for_the_page_is_told_to_who_may_read_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        session.add(DagModel(dag_id="ferry.X.Y", bundle_name="dags-folder", is_stale=False, description="Copies, as /x.properties says"))
        session.flush()
        session.add(DagTag(dag_id="ferry.X.Y", name="ferry"))
    try:
        problem = page.get("overview")["problem"]
        assert "ferry.X.Y (Copies, as /x.properties says)" in problem["message"]
        monkeypatch.setattr(ferry.airflow.page, "may_read", lambda _, dag_id: dag_id != "ferry.X.Y")
        assert page.get("overview")["problem"] is None
    finally:
        with create_session() as session:
            for kind in (DagTag, DagModel):
                session.execute(delete(kind).where(kind.dag_id == "ferry.X.Y"))


def test_the_check_of_limits_keeps_the_lag_for_the_history(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    assert keep_lag(page.flow, "second", RunLag(99, 5.0, None)) == ""
    monkeypatch.setattr(steps, "get_current_context", dict)
    monkeypatch.setattr(steps, "request_of", lambda *_: RunRequest("A->B", "second"))
    assert steps.check_limits(page.reference, {"dry_run": False, "needs_copy": True})["lag_records"] == 0
    kept = {run["run_id"]: run["lag_records"] for run in read_runs(page.flow)["runs"]}
    assert kept["second"] == 0
