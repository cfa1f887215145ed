"""Kerberos with keytabs, against a real KDC whose tickets live for seconds, and a broker that wants new logins all the time."""

from __future__ import annotations

import importlib.util
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import Lab
from tests.drills.security.conftest import KERBEROS
from tests.drills.security.guarded import BRIEF_SECONDS
from tests.drills.security.kdc import REALM, TICKET_SECONDS, Kdc, missing, running_kdc
from tests.drills.security.test_connections import unencrypted
from tests.drills.security.test_refusals import data_path
from tools.kafka import SandboxCluster, compare_topics

from ferry.config import Cluster, Flow
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, ExitCode
from ferry.sandbox.ports import free_ports

LACKS = missing() or ("" if importlib.util.find_spec("gssapi") else "no gssapi for Python: pip install 'kafka-ferry[kerberos]'")
pytestmark = [pytest.mark.brokers, pytest.mark.skipif(bool(LACKS), reason=f"Kerberos cannot be tested here: {LACKS}")]

LANES = 40
# Some lives of a ticket.
LONG_SECONDS = 2.5 * TICKET_SECONDS
BROKER_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


def librdkafka_has_gssapi() -> bool:
    try:
        Producer({"builtin.features": "sasl_gssapi", "log_level": 0})
    except KafkaException:
        return False
    return True


@dataclass(frozen=True)
class Realm:
    """A KDC, and a cluster with a Kerberos listener beside its open one."""

    kdc: Kdc
    cluster: SandboxCluster
    port: int
    keytab: Path

    def login(self, alias: str) -> list[str]:
        """The lines of the page."""
        text = unencrypted(KERBEROS).replace("/etc/ferry/ferry.keytab", str(self.keytab)).replace("EXAMPLE.COM", REALM)
        return [line.replace("A.", f"{alias}.", 1) for line in [*text.splitlines(), "A.sasl.kerberos.min.time.before.relogin = 2000"]]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    directory = tmp_path_factory.mktemp("realm")
    with running_kdc(directory / "kdc") as kdc, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.config))
        patch.setenv("KRB5CCNAME", f"FILE:{directory}/tickets")
        broker, keytab = kdc.keytab("kafka/localhost"), kdc.keytab("ferry")
        (port,) = free_ports(1)
        properties = {
            "listeners": f"PLAIN://127.0.0.1:{{port}},KERBEROS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{{controller_port}}",
            "advertised.listeners": f"PLAIN://localhost:{{port}},KERBEROS://localhost:{port}",
            "listener.security.protocol.map": "PLAIN:PLAINTEXT,KERBEROS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAIN",
            "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.kerberos.gssapi.sasl.jaas.config": f'{BROKER_MODULE} keyTab="{broker}" principal="kafka/localhost@{REALM}";',
            "listener.name.kerberos.gssapi.connections.max.reauth.ms": str(BRIEF_SECONDS * 1_000),
            "sasl.kerberos.service.name": "kafka",
        }
        options = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.security.krb5.conf={kdc.config}")
        with SandboxCluster.start(directory / "broker", "kerberos", properties=properties, java_options=options) as cluster:
            yield Realm(kdc, cluster, port, keytab)


def kerberos_module() -> ModuleType:
    """It needs an extra, so it cannot be imported everywhere."""
    return importlib.import_module("ferry.config.kerberos")


@pytest.fixture
def data_path_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if librdkafka was built for Kerberos: for tests that do not use it."""
    monkeypatch.setattr(kerberos_module(), "_has_gssapi", lambda: True)


@pytest.fixture
def kerberos(data_path_alone: None, realm: Realm, guarded_flow: Callable[..., Flow]) -> Cluster:
    address = f"localhost:{realm.port}"
    return guarded_flow(address, realm.cluster.bootstrap, *realm.login("A")).source


def ask_data_path(cluster: Cluster, seconds: float = 0.0) -> int:
    """Log in, and stay for so long; the number of questions that were answered."""
    answers, ends = 0, time.monotonic() + seconds
    with data_path(cluster) as (loop, connection):
        loop.run(connection.open)
        while True:
            loop.run(connection.refresh_brokers)
            answers += 1
            if time.monotonic() >= ends:
                return answers
            time.sleep(0.2)


def test_the_data_path_logs_in(kerberos: Cluster, realm: Realm) -> None:
    assert ask_data_path(kerberos) == 1
    assert kerberos.user_name == f"ferry@{REALM}"
    log = (realm.kdc.directory / "kdc.log").read_text()
    assert f"ferry@{REALM} for kafka/localhost@{REALM}" in log


@pytest.mark.long
def test_the_data_path_outlives_its_tickets(kerberos: Cluster, realm: Realm) -> None:
    before = (realm.kdc.directory / "kdc.log").read_text().count("AS_REQ")
    assert ask_data_path(kerberos, LONG_SECONDS) > LONG_SECONDS
    assert (realm.kdc.directory / "kdc.log").read_text().count("AS_REQ") > before + 1


@pytest.mark.usefixtures("data_path_alone")
def test_what_the_kdc_refuses_is_told(realm: Realm, guarded_flow: Callable[..., Flow]) -> None:
    address = f"localhost:{realm.port}"
    lines = [line.replace("ferry@", "nobody@") for line in realm.login("A")]
    with pytest.raises(AuthenticationFailed, match=f"no Kerberos ticket of nobody@{REALM} for kafka@localhost: "):
        ask_data_path(guarded_flow(address, realm.cluster.bootstrap, *lines).source)


@pytest.mark.usefixtures("data_path_alone")
def test_a_kdc_that_does_not_answer_is_told(
    realm: Realm, guarded_flow: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    (tmp_path / "krb5.conf").write_text(realm.kdc.config.read_text().replace(f":{realm.kdc.port}", f":{port}"))
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    other = realm.kdc.keytab("other")
    lines = [line.replace("ferry@", "other@").replace(str(realm.keytab), str(other)) for line in realm.login("A")]
    with pytest.raises(ClusterUnreachable, match=r"no Kerberos ticket of other@.*Cannot contact any KDC"):
        ask_data_path(guarded_flow(f"localhost:{realm.port}", realm.cluster.bootstrap, *lines).source)


@pytest.mark.skipif(librdkafka_has_gssapi(), reason="this librdkafka was built for Kerberos")
@pytest.mark.parametrize("end", ["source", "target"])
def test_without_librdkafkas_part_nothing_is_written(end: str, realm: Realm, lab: Lab, guarded_flow: Callable[..., Flow]) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    here, there = realm.cluster.client_settings(), lab.target.client_settings()
    source, target = (here, there) if end == "source" else (there, here)
    admins = [AdminClient(source), AdminClient(target)]
    admins[0].create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    before = [topics(admin) for admin in admins]
    addresses = [f"localhost:{realm.port}", lab.target.bootstrap]
    login = realm.login("A" if end == "source" else "B")
    flow = guarded_flow(*(addresses if end == "source" else addresses[::-1]), *login, f"A->B.topics = {topic}")
    with pytest.raises(ConfigError, match=r"needs a librdkafka that was built for it.* docs/security\.md"):
        lab.run(flow)
    assert [topics(admin) for admin in admins] == before


def topics(admin: AdminClient) -> set[str]:
    """Without the one that a broker makes by itself when it is asked for a group."""
    return set(admin.list_topics(timeout=20).topics) - {"__consumer_offsets"}


HANDLER = """
import time

class Dawdler:
    def handle(self, record):
        time.sleep(0.05)
        return [record]
"""


@pytest.mark.long
def test_a_long_copy_outlives_its_tickets(
    realm: Realm, lab: Lab, guarded_flow: Callable[..., Flow], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run needs librdkafka at neither side here, unless it was built for Kerberos: then both clients log in."""
    if not librdkafka_has_gssapi():
        monkeypatch.setattr(kerberos_module(), "_has_gssapi", lambda: True)
    (tmp_path / "dawdling_for_tickets.py").write_text(HANDLER)
    monkeypatch.syspath_prepend(tmp_path)
    topic, records = f"t-{secrets.token_hex(4)}", int(LONG_SECONDS / 0.05)
    source = realm.cluster.client_settings()
    admin = AdminClient(source)
    admin.create_topics([NewTopic(topic, LANES, 1)])[topic].result(30)
    producer = Producer(source)
    for number in range(records):
        producer.produce(topic, value=str(number).encode(), partition=number % LANES)
    assert producer.flush(30) == 0
    more = [f"A->B.topics = {topic}", f"A->B.ferry.lanes = {LANES}", "A->B.ferry.message.handler = dawdling_for_tickets:Dawdler"]
    flow = guarded_flow(f"localhost:{realm.port}", lab.target.bootstrap, *realm.login("A"), *more)
    started, log = time.monotonic(), realm.kdc.directory / "kdc.log"
    before = log.read_text().count("AS_REQ")
    report = lab.run(flow)
    assert time.monotonic() - started > LONG_SECONDS
    assert (report.exit_code, report.records) == (ExitCode.DONE, records)
    assert log.read_text().count("AS_REQ") > before + 1
    assert compare_topics(source, lab.target.client_settings(), {topic: f"{flow.source.alias}.{topic}"}).equal


@pytest.mark.long
@pytest.mark.skipif(not librdkafka_has_gssapi(), reason="the librdkafka of confluent-kafka's wheels is without Kerberos (docs/security.md)")
def test_both_clients_log_in_at_a_target_and_outlive_their_tickets(realm: Realm, lab: Lab, guarded_flow: Callable[..., Flow]) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    admin = AdminClient(lab.target.client_settings())
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer(lab.target.client_settings())
    producer.produce(topic, value=b"1")
    assert producer.flush(30) == 0
    lines = [*realm.login("B"), f"A->B.topics = {topic}"]
    flow = guarded_flow(lab.target.bootstrap, f"localhost:{realm.port}", *lines)
    report = lab.run(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 1)
    client = AdminClient(flow.target.librdkafka())
    ends = time.monotonic() + LONG_SECONDS
    while time.monotonic() < ends:
        assert f"{flow.source.alias}.{topic}" in client.list_topics(timeout=20).topics
        time.sleep(0.5)
    # A new client, with a ticket that is not the first one.
    assert AdminClient(flow.target.librdkafka()).list_topics(timeout=20).topics
