"""What the command line says to input that cannot work: one line that names what to change, the documented code, nothing half-done."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, NewTopic, ResourcePatternType, ResourceType
from tests.both_clusters import both_clusters
from tests.waiting import NEVER_SECONDS
from tools.kafka import SandboxCluster, read_all

from ferry.errors import ExitCode
from ferry.sandbox.ports import free_ports

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")
INLINE = ("--master", "inline")
# `ferry` may do everything. `blind` sees nothing but the source's topics named open-…. The others lack one permission on remote topics:
# `mute` Write, `deaf` Read, `fixed` Alter.
USERS = {user: f"{user}-{secrets.token_hex(8)}" for user in ("admin", "ferry", "blind", "mute", "deaf", "fixed")}
EVERYTHING = (AclOperation.ALL,)
LOOKING = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.CREATE)

ConfigFile = Callable[..., Path]


@dataclass(frozen=True)
class Side:
    """One of the two clusters, as its administrator sees it."""

    cluster: SandboxCluster
    admin: AdminClient

    @classmethod
    def of(cls, cluster: SandboxCluster) -> Side:
        return cls(cluster, AdminClient(cluster.client_settings()))

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
        return topic

    def filled(self, prefix: str = "t", partitions: int = 1) -> str:
        """A new topic with one small record in each partition."""
        topic = self.create(f"{prefix}-{secrets.token_hex(4)}", partitions)
        for partition in range(partitions):
            self.produce(topic, partition, b"small")
        return topic

    def produce(self, topic: str, partition: int, value: bytes, at: datetime | None = None) -> None:
        producer = Producer({**self.cluster.client_settings(), "log_level": 0})
        stamp = {} if at is None else {"timestamp": int(at.timestamp() * 1000)}
        producer.produce(topic, value=value, key=b"k", partition=partition, **stamp)
        assert producer.flush(30) == 0

    def allow(self, user: str, operations: Iterable[AclOperation], kind: ResourceType = ResourceType.TOPIC, prefix: str = "") -> None:
        name, pattern = (prefix, ResourcePatternType.PREFIXED) if prefix else ("*", ResourcePatternType.LITERAL)
        if kind == ResourceType.BROKER:  # as librdkafka calls the cluster
            name = "kafka-cluster"
        rules = [AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW) for operation in operations]
        for future in self.admin.create_acls(rules).values():
            future.result(30)

    def topics_of(self, config: Path) -> list[str]:
        """What the flow of `config` has left on this cluster: remote topics and Ferry's own."""
        alias = flow_of(config).partition("->")[0]
        return sorted(name for name in self.admin.list_topics(timeout=10).topics if alias in name)

    def counts(self, topic: str) -> list[int]:
        return [len(partition) for partition in read_all(self.cluster.client_settings(), topic)]


@dataclass(frozen=True)
class Outcome:
    """What a command answered; `complaint` is its one line, `output` everything that it wrote."""

    code: int
    complaint: str
    output: str

    def lacks(self, *parts: object) -> list[str]:
        """Those of `parts` that the line does not name."""
        return [str(part) for part in parts if str(part) not in self.complaint]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Source and target that want a login, and permissions from everybody but `admin`."""
    directory = tmp_path_factory.mktemp("guarded")
    with both_clusters(directory, users=USERS, authorizer=True) as pair:
        source, target = map(Side.of, pair)
        for user in ("ferry", "mute", "deaf", "fixed"):
            source.allow(user, EVERYTHING)
        source.allow("blind", EVERYTHING, prefix="open-")
        for user in ("ferry", "mute", "deaf", "fixed"):
            target.allow(user, EVERYTHING, ResourceType.GROUP)
            target.allow(user, EVERYTHING, ResourceType.TRANSACTIONAL_ID)
            target.allow(user, [AclOperation.DESCRIBE_CONFIGS], ResourceType.BROKER)
            target.allow(user, EVERYTHING, prefix="mm2-ferry")
        target.allow("ferry", EVERYTHING)
        target.allow("mute", (*LOOKING, AclOperation.READ))
        target.allow("deaf", (*LOOKING, AclOperation.WRITE))
        target.allow("fixed", (*LOOKING, AclOperation.READ, AclOperation.WRITE))
        yield source, target


@pytest.fixture
def source(sides: tuple[Side, Side]) -> Side:
    return sides[0]


@pytest.fixture
def target(sides: tuple[Side, Side]) -> Side:
    return sides[1]


@pytest.fixture
def config(config_file: ConfigFile, copy_only: tuple[str, ...], source: Side, target: Side) -> ConfigFile:
    """A config file with logins: `config("A->B.topics = x", A="user", B="user")`; the clusters may be given otherwise."""

    def write(*lines: str, A: str = "ferry", B: str = "ferry", **clusters: SandboxCluster) -> Path:  # noqa: N803 - the aliases
        logins = [line for alias, user in (("A", A), ("B", B)) for line in login(alias, user, USERS[user])]
        return config_file(*logins, *copy_only, *lines, **{"source": source.cluster, "target": target.cluster} | clusters)

    return write


def login(alias: str, user: str, password: str) -> list[str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return [
        f"{alias}.security.protocol = SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism = PLAIN",
        f'{alias}.sasl.jaas.config = {module} required username="{user}" password="{password}";',
    ]


def flow_of(config: Path) -> str:
    found = re.search(r"^(\S+->\S+)\.enabled", config.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def alias_of(config: Path, side: str) -> str:
    return flow_of(config).split("->")[side == "B"]


def refused(config: Path, *options: str, flow: str = "") -> Outcome:
    """Run a flow that must fail, and see that it says so in one line and keeps secrets."""
    done = subprocess.run(
        [FERRY, "run", str(config), "--flow", flow or flow_of(config), *options],
        capture_output=True,
        text=True,
        timeout=NEVER_SECONDS,
        check=False,
    )
    output = done.stdout + done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith("ferry: ")]
    assert len(complaints) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "a defect" not in done.stderr
    assert not re.search(r"^%\d\|", done.stderr, re.MULTILINE), "librdkafka's own log"
    assert not [password for password in USERS.values() if password in output]
    return Outcome(done.returncode, complaints[0], output)


def closed_port() -> int:
    return free_ports(1)[0]


def test_an_unknown_flow(config: ConfigFile, target: Side) -> None:
    file = config("A->B.topics = t")
    outcome = refused(file, flow="X->Y")
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("ArgumentError", file, "X->Y", f"enabled flows: {flow_of(file)}") == []
    assert target.topics_of(file) == []


@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_a_config_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "none.properties" if kind == "missing" else tmp_path
    outcome = refused(file, flow="A->B")
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("ConfigError", file, "cannot be read", "give the path of an mm2.properties file") == []


def test_a_misspelt_key(config: ConfigFile, target: Side) -> None:
    file = config("A->B.topcis = t")
    line = len(file.read_text().splitlines())
    outcome = refused(file)
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("ConfigError", f"{file}:{line}: {flow_of(file)}.topcis", f"did you mean {flow_of(file)}.topics?") == []
    assert target.topics_of(file) == []


@pytest.mark.long
def test_a_cluster_that_does_not_answer(config: ConfigFile, source: Side, target: Side) -> None:
    nowhere = replace(source.cluster, port=closed_port())
    file = config("A->B.topics = t", source=nowhere)
    alias = alias_of(file, "A")
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.UNREACHABLE
    assert outcome.lacks("ClusterUnreachable", f"cluster {alias} does not answer ({nowhere.bootstrap}, connection refused)") == []
    assert "check that the cluster is up; then bootstrap.servers" in outcome.output
    assert target.topics_of(file) == []


@pytest.mark.long
@pytest.mark.parametrize("side", ["A", "B"])
def test_a_wrong_password(side: str, config: ConfigFile, source: Side, target: Side) -> None:
    file = config("A->B.topics = t")
    wrong, alias = f"wrong-{secrets.token_hex(8)}", alias_of(file, side)
    text = file.read_text()
    right = next(line for line in text.splitlines() if line.startswith(f"{alias}.sasl.jaas.config"))
    file.write_text(text.replace(right, right.replace(USERS["ferry"], wrong)))
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.UNREACHABLE
    where = (source if side == "A" else target).cluster.bootstrap
    assert outcome.lacks("AuthenticationFailed", f"cluster {alias} ({where})", f"check sasl.* of {alias}") == []
    assert wrong not in outcome.output
    assert target.topics_of(file) == []


def test_a_source_that_hides_all_topics(config: ConfigFile, source: Side, target: Side) -> None:
    hidden = source.filled()
    file = config(f"A->B.topics = {hidden}", A="blind")
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.UNREACHABLE
    assert outcome.lacks("NotAuthorized", f"cluster {alias_of(file, 'A')}", f"does not show topic {hidden}", "grant Read") == []
    assert target.topics_of(file) == []


def test_a_source_that_hides_some_topics(config: ConfigFile, source: Side, target: Side) -> None:
    hidden, seen = source.filled(), source.filled("open")
    file = config(f"A->B.topics = {hidden}, {seen}", A="blind")
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.PARTLY_FAILED
    assert outcome.lacks("1 failed", f"topic {hidden}: NotAuthorized", "grant Read") == []
    assert target.counts(f"{alias_of(file, 'A')}.{seen}") == [1]


def test_a_target_that_takes_no_records(config: ConfigFile, source: Side, target: Side) -> None:
    topic = source.filled()
    file = config(f"A->B.topics = {topic}", B="mute")
    outcome = refused(file, *INLINE)
    remote = f"{alias_of(file, 'A')}.{topic}"
    assert outcome.code == ExitCode.PARTLY_FAILED
    assert outcome.lacks(f"{topic}-0: BatchRefused", remote, "grant Write") == []
    assert target.counts(remote) == [0]


def test_a_target_that_takes_no_positions(config: ConfigFile, source: Side, target: Side) -> None:
    topic = source.filled()
    file = config(f"A->B.topics = {topic}", B="deaf")
    outcome = refused(file, *INLINE)
    remote = f"{alias_of(file, 'A')}.{topic}"
    assert outcome.code == ExitCode.PARTLY_FAILED
    named = f"grant Read on topic {remote} at cluster {alias_of(file, 'B')} to User:deaf"
    assert outcome.lacks(f"{topic}-0: BatchRefused", named) == []
    assert target.counts(remote) == [0]


def test_a_target_that_lets_nothing_be_created(config: ConfigFile, source: Side, target: Side) -> None:
    topic = source.filled()
    file = config(f"A->B.topics = {topic}", B="blind")
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.UNREACHABLE
    assert outcome.lacks("NotAuthorized", f"cluster {alias_of(file, 'B')}", "grant") == []
    assert target.topics_of(file) == []


@pytest.mark.parametrize(
    ("servers", "says"),
    [("{0}", "to itself"), ("{0}, 127.0.0.1:{1}", "to itself"), ("localhost:{2}", "are the same cluster")],
    ids=["alike", "with one more server", "by another name"],
)
def test_two_aliases_of_one_cluster(servers: str, says: str, config: ConfigFile, source: Side) -> None:
    file = config("A->B.topics = t", target=source.cluster)
    first, second = (f"{alias_of(file, side)}" for side in "AB")
    bootstrap = source.cluster.bootstrap
    line = f"{second}.bootstrap.servers = "
    written = line + servers.format(bootstrap, closed_port(), bootstrap.rpartition(":")[2])
    file.write_text(file.read_text().replace(line + bootstrap, written))
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("ConfigError", first, second, says, "bootstrap.servers") == []
    assert source.topics_of(file) == []


@pytest.mark.parametrize("master", ["spark://127.0.0.1:{port}", "nonsense"])
def test_a_spark_master_that_cannot_be_used(master: str, config: ConfigFile, source: Side, target: Side) -> None:
    master = master.format(port=closed_port())
    file = config(f"A->B.topics = {source.filled()}")
    outcome = refused(file, "--master", master)
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("SparkMissing", master, "local[") == []
    assert target.topics_of(file) == []


@pytest.mark.parametrize("where", ["none/report.json", "."])
def test_a_report_that_cannot_be_written(where: str, config: ConfigFile, source: Side, target: Side, tmp_path: Path) -> None:
    file = config(f"A->B.topics = {source.filled()}")
    outcome = refused(file, *INLINE, "--report", str(tmp_path / where))
    assert outcome.code == ExitCode.BAD_INPUT
    assert outcome.lacks("ArgumentError", "--report", tmp_path / where, "cannot be written") == []
    assert target.topics_of(file) == []


def test_a_remote_topic_that_cannot_be_grown(config: ConfigFile, source: Side, target: Side) -> None:
    narrow, other = source.filled(partitions=2), source.filled()
    file = config(f"A->B.topics = {narrow}, {other}", B="fixed")
    alias = alias_of(file, "A")
    target.create(f"{alias}.{narrow}", 1)
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.PARTLY_FAILED
    assert outcome.lacks("1 failed", f"{narrow}-1: TargetTooNarrow", f"{alias}.{narrow} has 1 partition", "grant Alter") == []
    assert (target.counts(f"{alias}.{narrow}"), target.counts(f"{alias}.{other}")) == ([1], [1])


def test_a_record_larger_than_the_remote_topic_takes(config: ConfigFile, source: Side, target: Side) -> None:
    topic = source.filled(partitions=2)
    file = config(f"A->B.topics = {topic}")
    remote = target.create(f"{alias_of(file, 'A')}.{topic}", 2, max_message_bytes="2000")
    source.produce(topic, 1, secrets.token_bytes(10_000))
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.PARTLY_FAILED
    assert outcome.lacks("1 failed", f"{topic}-1: BatchRefused", remote, "source offset 1", "raise max.message.bytes") == []
    assert target.counts(remote) == [1, 1]


def test_a_timestamp_out_of_the_targets_limits(config: ConfigFile, source: Side, target: Side) -> None:
    topic = source.filled(partitions=2)
    file = config(f"A->B.topics = {topic}")
    remote = target.create(f"{alias_of(file, 'A')}.{topic}", 2, message_timestamp_before_max_ms="1000000")
    source.produce(topic, 1, b"old", at=datetime.now(UTC) - timedelta(days=30))
    outcome = refused(file, *INLINE)
    assert outcome.code == ExitCode.PARTLY_FAILED
    assert outcome.lacks("1 failed", f"{topic}-1: BatchRefused", remote, "source offset", "message.timestamp.before.max.ms") == []
    assert target.counts(remote)[0] == 1
