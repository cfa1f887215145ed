"""`ferry doctor` on real clusters: one with an authorizer, one stopped, one that is fine."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from tests.conftest import Lab
from tests.opened import ask_capabilities
from tools.kafka import SandboxCluster

from ferry.config import load_config
from ferry.errors import ExitCode
from ferry.sandbox.ports import free_ports

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")
USERS = {user: f"{user}-{secrets.token_hex(8)}" for user in ("admin", "ferry")}
ConfigFile = Callable[..., Path]
ClusterFactory = Callable[..., SandboxCluster]
TopicFactory = Callable[..., str]


def doctor(*arguments: object, code: int) -> list[dict[str, Any]]:
    command = [str(FERRY), "doctor", *map(str, arguments), "--json"]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False)
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (code, code), done.stdout
    assert all(entry["fix"] for entry in document["findings"] if entry["verdict"] != "ok")
    assert not [password for password in USERS.values() if password in done.stdout + done.stderr]
    found: list[dict[str, Any]] = document["findings"]
    return found


def of(findings: list[dict[str, Any]], where: str, check: str) -> list[dict[str, Any]]:
    return [entry for entry in findings if entry["where"].endswith(where) and entry["check"] == check]


def test_two_clusters_where_all_is_well(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    path = lab.config(f"A->B.topics = {topic}")
    before = AdminClient(lab.source.client_settings()).list_topics(timeout=10).topics.keys()
    findings = doctor(path, code=0)
    flow = load_config(path).flows[0]
    for alias in (flow.source.alias, flow.target.alias):
        assert [entry["verdict"] for entry in of(findings, alias, "reachable") + of(findings, alias, "clock")] == ["ok", "ok"]
        assert "Kafka 4.3" in of(findings, alias, "version")[0]["found"]
    assert "KIP-890" in of(findings, flow.target.alias, "exactly-once")[0]["found"]
    assert of(findings, flow.name, "rights at the target")[0]["verdict"] == "ok"
    assert AdminClient(lab.source.client_settings()).list_topics(timeout=10).topics.keys() == before, "it writes nothing"


def test_the_clock_of_a_cluster(config_file: ConfigFile) -> None:
    found = ask_capabilities(load_config(config_file("A->B.topics = x")).flows[0].source).clock
    assert found is not None
    assert abs(found.ahead_ms) <= found.within_ms + 5, "it is the same machine"


@pytest.mark.long
def test_a_stopped_cluster_and_one_with_an_authorizer(lab: Lab, cluster_factory: ClusterFactory) -> None:
    guarded = cluster_factory(users=USERS, authorizer=True)
    admin = AdminClient(guarded.client_settings())
    allow(admin, ResourceType.TOPIC, "*", AclOperation.READ)
    allow(admin, ResourceType.TRANSACTIONAL_ID, "*", AclOperation.WRITE)
    topic = lab.topic(lab.source)
    path = lab.config(f"A->B.topics = {topic}", target=guarded)
    flow = load_config(path).flows[0]
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = [
        f"{flow.target.alias}.security.protocol = SASL_PLAINTEXT",
        f"{flow.target.alias}.sasl.mechanism = PLAIN",
        f'{flow.target.alias}.sasl.jaas.config = {module} required username="ferry" password="{USERS["ferry"]}";',
    ]
    path.write_text("\n".join([path.read_text(), *login]) + "\n")

    told = doctor(path, code=5)  # without Describe on the cluster it cannot see ACLs
    assert [entry["verdict"] for entry in of(told, flow.target.alias, "clock")] == ["warning"]
    assert "Describe on the cluster" in of(told, flow.target.alias, "clock")[0]["found"]
    assert any("could not be checked" in entry["found"] for entry in of(told, flow.name, "rights at the target"))
    assert of(told, flow.name, "rights at the source")[0]["verdict"] == "ok"

    allow(admin, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE)
    told = doctor(path, code=5)
    missing = of(told, flow.name, "rights at the target")
    assert {entry["verdict"] for entry in missing} == {"failure"}
    assert all(entry["fix"].startswith(("kafka-acls.sh --bootstrap-server ", "ferry acls ")) for entry in missing)
    assert not any("transactional id" in entry["found"] for entry in missing), "that one is granted"
    assert [entry["verdict"] for entry in of(told, flow.target.alias, "clock")] == ["ok"]

    for kind in (ResourceType.TOPIC, ResourceType.GROUP):
        allow(admin, kind, "*", AclOperation.ALL)
    allow(admin, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS)
    allow(admin, ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER)
    told = doctor(path, code=0)
    assert [entry["verdict"] for entry in of(told, flow.name, "rights at the target")] == ["ok"]

    guarded.stop()
    told = doctor(path, code=ExitCode.UNREACHABLE)
    (dead,) = [entry for entry in told if entry["verdict"] == "failure"]
    assert (dead["where"], guarded.bootstrap in dead["found"]) == (f"cluster {flow.target.alias}", True)
    assert "not checked" in of(told, flow.name, "everything else")[0]["found"]


def test_a_bad_config_and_no_config(config_file: ConfigFile) -> None:
    path = config_file("A->B.topcis = x")
    told = doctor(path, code=ExitCode.BAD_INPUT)
    assert "did you mean" in next(entry for entry in told if entry["where"] == "config")["found"]
    assert {entry["where"] for entry in doctor(code=0)} == {"this machine"}


@pytest.mark.airflow
def test_the_next_step_in_an_airflow(tmp_path: Path) -> None:
    """Without a database nothing else is known."""
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run([FERRY, "doctor", "--airflow"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.PARTLY_FAILED, done.stderr
    *_, last = done.stdout.splitlines()
    assert last == "next: start Airflow as you always do; a new one: airflow standalone, in another terminal"


@pytest.mark.long
def test_the_table(lab: Lab) -> None:
    nowhere = SandboxCluster("gone", Path(), free_ports(1)[0], 0)
    done = subprocess.run(
        [FERRY, "doctor", lab.config("A->B.topics = x", target=nowhere)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == ExitCode.UNREACHABLE
    assert "→ check that the cluster is up" in done.stdout
    assert done.stderr.count("ferry: ") == 1


def allow(admin: AdminClient, kind: ResourceType, name: str, operation: AclOperation) -> None:
    rule = AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ferry", "*", operation, AclPermissionType.ALLOW)
    for future in admin.create_acls([rule]).values():
        future.result(30)
