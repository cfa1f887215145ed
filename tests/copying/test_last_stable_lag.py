"""Open and hanging transactions, on both sides, are named with what to do about them; what is not held back is copied all the same."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, OffsetSpec, ResourcePatternType, ResourceType
from tests.conftest import ClusterFactory, ConfigFile, Lab, RunFlow, TopicFactory
from tests.copying.unended import append_unended
from tests.opened import administration
from tools.kafka import SandboxCluster
from tools.kafka.jars import tools_jars
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.clusters.logs.held_back import LastStableLag, OpenTransaction
from ferry.clusters.logs.open_transactions import open_transactions
from ferry.clusters.net.partitions import TopicPartition as Key
from ferry.clusters.open_cluster import open_cluster
from ferry.config import Flow, load_config
from ferry.copying import last_stable_lag as last_stable_lag_module
from ferry.copying.last_stable_lag import _at_work, aged, aged_by_records, overdue, still_open
from ferry.errors import ExitCode
from ferry.ledger.run_report import PartitionFailure
from ferry.sandbox.jars import java

AT_ONCE = "ferry.open.transaction.warn.ms = 1"
JAVA_SECONDS = 60
# Longer than a test takes on a busy machine, or the coordinator would end the transaction under it; the broker allows no more.
OPEN_MS = 900_000
USERS = {"admin": "secret", "blind": "secret"}


def begun(cluster: SandboxCluster, topic: str, transactional: str) -> Producer:
    """A producer whose transaction has written three records to partition 0 of `topic` and is open."""
    settings = {"transactional.id": transactional, "transaction.timeout.ms": OPEN_MS, "linger.ms": 0}
    producer = Producer({**cluster.client_settings(), **settings})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(3):
        producer.produce(topic, value=f"open-{number}", partition=0)
    assert producer.flush(30) == 0
    return producer


def stable_end(cluster: SandboxCluster, topic: str) -> int:
    client, key = AdminClient(cluster.client_settings()), TopicPartition(topic, 0)
    return int(client.list_offsets({key: OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)[key].result(30).offset)


def shown(config: Path, command: str, flow: str) -> tuple[int, Any, str]:
    """Exit code, JSON document and text of `ferry status` or `ferry plan`."""
    arguments = [command, str(config), "--flow", flow]
    found, text = (CliRunner().invoke(app, [*arguments, *more]) for more in (["--json"], []))
    assert text.exit_code == found.exit_code
    return found.exit_code, json.loads(found.stdout), " ".join(text.stdout.split())


@pytest.mark.unit
def test_age_is_the_coordinators_or_the_records() -> None:
    entry = LastStableLag("t", 0, "A", "a:1, b:2", Key("t", 0), 10, 20, transaction=OpenTransaction(7, 3, 10, 4_000))
    assert (aged(entry, 10_000, 6_000).age_ms, aged(entry, 10_000, 6_000).overdue) == (6_000, True)
    assert not aged(entry, 10_000, 6_001).overdue
    begun_later = replace(entry, transaction=OpenTransaction(7, 3, 10, 4_000, "id", "Ongoing", 9_000, 60_000))
    assert aged(begun_later, 10_000, 6_000).age_ms == 1_000
    unknown = replace(entry, transaction=OpenTransaction(7, 3, 10, -1))
    assert (aged(unknown, 10_000, 1).age_ms, aged(unknown, 10_000, 1).overdue) == (None, False)
    assert aged(replace(entry, transaction=OpenTransaction(7, 3, 10, 11_000)), 10_000, 1).age_ms == 0
    assert "transactional id unknown" in entry.what
    assert "--bootstrap-server a:1,b:2 abort --topic t --partition 0 --start-offset 10" in entry.remedy
    assert "60 s after its start" in begun_later.remedy
    for start in (0, 1):  # of the epoch: known, though old
        assert aged(replace(entry, transaction=OpenTransaction(7, 3, 10, start)), 10_000, 1).age_ms == 10_000 - start
        assert aged(replace(entry, transaction=OpenTransaction(7, 3, 10, 9, "id", "Ongoing", start)), 10_000, 1).age_ms == 10_000 - start
    assert "kafka-transactions" not in begun_later.remedy  # its coordinator would go on to end the other partitions otherwise


@pytest.mark.unit
def test_a_transaction_that_its_coordinator_would_have_ended_shows_that_the_clock_is_wrong() -> None:
    entry, now, hour = LastStableLag("t", 0, "A", "a:1", Key("t", 0), 10, 20), 100_000_000, 3_600_000
    for state, age, known in (("Ongoing", hour, False), ("Ongoing", 60_000, True), ("PrepareCommit", hour, True)):
        found = aged(replace(entry, transaction=OpenTransaction(7, 3, 10, 9, "id", state, now - age, 60_000)), now, 60_000)
        assert (found.age_ms, found.overdue) == ((age, True) if known else (None, False))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("age", "text"),
    [(119_999, "119 s"), (120_000, "2 min"), (7_199_999, "120 min"), (7_200_000, "2 h"), (200_000_000, "2 days"), (999, "0 s")],
)
def test_durations_are_told_roughly(age: int, text: str) -> None:
    entry = LastStableLag("t", 0, "A", "a:1", Key("A.t", 0), 10, 20, age_ms=age, hidden="not allowed")
    begun = f"a transaction is open for {text} by this machine's clock"
    assert entry.what == f"cluster A, A.t-0: {begun}, from offset 10 on (the log ends at 20): not allowed"


@pytest.mark.unit
def test_a_lag_as_json_and_as_a_failure() -> None:
    transaction = OpenTransaction(7, 3, 10, 4_000, "id", "Ongoing", 9_000, 60_000)
    entry = LastStableLag("t", 4, "A", "a:1", Key("A.t", 4), 10, 20, 130_000, transaction, others=2, overdue=True)
    assert entry.document() == {
        "topic": "t",
        "partition": 4,
        "cluster": "A",
        "held_topic": "A.t",
        "stable_end": 10,
        "high_watermark": 20,
        "age_ms": 130_000,
        "overdue": True,
        "producer_id": 7,
        "producer_epoch": 3,
        "transactional_id": "id",
        "state": "Ongoing",
        "others": 2,
        "hidden": "",
        "remedy": "wait until the cluster aborts the transaction, 60 s after its start; "
        "or, if the application with transactional id id hangs or is gone, "
        "start it again, which aborts it at once; then run again",
    }
    young, unseen = replace(entry, overdue=False), replace(entry, transaction=None, hidden="not allowed")
    problem = (
        "cluster A, A.t-4: a transaction is open for 2 min by this machine's clock, from offset 10 on (the log ends at 20): "
        "producer id 7, epoch 3, transactional id id, and 2 more after it; "
    )
    assert overdue([young, entry]) == [PartitionFailure("t", 4, "TransactionHangs", problem + entry.remedy)]
    found = unseen.document()
    assert [found[name] for name in ("producer_id", "producer_epoch", "transactional_id", "state", "hidden")] == [None] * 4 + [
        "not allowed"
    ]


@pytest.mark.unit
def test_the_flows_own_transaction_counts_only_when_nobody_will_end_it() -> None:
    own = OpenTransaction(7, 3, 10, 4_000, "ferry-A->B-0", "Ongoing", 9_000, 60_000)
    assert _at_work(own, "ferry-A->B-")
    assert not _at_work(replace(own, started=-1), "ferry-A->B-"), "its coordinator has forgotten it"
    assert not _at_work(replace(own, transactional_id="payments"), "ferry-A->B-")
    assert not _at_work(replace(own, transactional_id=None), "ferry-A->B-")
    assert not _at_work(None, "ferry-A->B-")


@pytest.mark.unit
def test_record_times_tell_the_age_of_what_cannot_be_seen() -> None:
    """A record at or behind the last stable offset that is younger than the threshold: then it may have begun just now."""
    asked: list[Any] = []
    young, old, idle = (LastStableLag("t", number, "A", "a:1", Key("t", number), 10, 20, hidden="not allowed") for number in range(3))

    def offsets_for_time(keys: list[Key], moment: int, *, committed: bool) -> tuple[dict[Key, int | None], None]:
        asked.append((keys, moment, committed))
        return {young.held: 10, old.held: 11, idle.held: None}, None

    admin: Any = SimpleNamespace(offsets_for_time=offsets_for_time)
    found = aged_by_records([young, old, idle], admin, 10_000, 6_000)
    assert found == [young, replace(old, age_ms=6_000, overdue=True), replace(idle, age_ms=6_000, overdue=True)]
    assert asked == [([young.held, old.held, idle.held], 4_000, False)], "its own records are not committed"
    assert aged_by_records([], admin, 10_000, 6_000) == []
    unknown: Any = SimpleNamespace(offsets_for_time=lambda *_, **__: ({}, None))
    assert aged_by_records([young], unknown, 10_000, 6_000) == [young], "a partition that did not answer is not taken for an old one"


@pytest.mark.unit
def test_what_ends_at_once_only_waited_for_its_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of old records look old from the moment on in which they are written."""
    monkeypatch.setattr(last_stable_lag_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(last_stable_lag_module, "MARKERS_SECONDS", 0.2)
    young, marked, hanging = (LastStableLag("t", number, "B", "b:1", Key("t", number), 10, 20, hidden="not allowed") for number in range(3))
    marked, hanging = replace(marked, overdue=True), replace(hanging, overdue=True)
    looks = iter([{marked.held: 10}, {marked.held: 20}])
    admin: Any = SimpleNamespace(end_offsets=lambda _: ({hanging.held: 10, **next(looks, {})}, {}))
    assert still_open([young, marked, hanging], admin) == [young, hanging]
    assert still_open([young], None) == [young], "nothing is asked for those"  # type: ignore[arg-type]


@pytest.mark.brokers
def test_a_log_that_begins_behind_its_last_stable_offset(lab: Lab) -> None:
    """DeleteRecords removes the first records of an open transaction. Since Kafka 4.0 the log begins behind its committed end then."""
    copied, new = lab.topic(lab.source, partitions=1), lab.topic(lab.source, partitions=1)
    lab.produce(lab.source, copied, [(0, None, b"before")] * 5)
    lab.run(lab.flow(f"A->B.topics = {copied}", *lab.copy_only))
    lab.produce(lab.source, new, [(0, None, b"before")] * 5)
    producers = [begun(lab.source, topic, f"payments-{topic}") for topic in (copied, new)]
    lines = (f"A->B.topics = {copied},{new}", *lab.copy_only)
    flow, admin = lab.flow(*lines), AdminClient(lab.source.client_settings())
    for topic in (copied, new):
        lab.produce(lab.source, topic, [(0, None, b"behind")] * 4)
        admin.delete_records([TopicPartition(topic, 0, 7)])[TopicPartition(topic, 0, 7)].result(30)
        assert stable_end(lab.source, topic) == 5
    for _ in range(2):
        report = lab.run(flow)
        assert (report.records, report.failed) == (0, ())
        code, found, _ = shown(lab.config(*lines), "plan", flow.name)
        assert (code, found["failed"], len(found["open_transactions"])) == (ExitCode.DONE, [], 2)
    for producer in producers:
        producer.commit_transaction(30)
    report = lab.run(flow)
    assert (report.records, report.failed) == (10, ())
    assert [(loss.topic, loss.upstream_start, loss.upstream_end) for loss in report.losses] == [(copied, 5, 7)]


@pytest.mark.brokers
def test_an_open_transaction_at_the_source_is_shown_and_fails_the_partition_when_it_is_old(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(partition, None, b"before") for partition in (0, 1) for _ in range(5)])
    producer = begun(lab.source, topic, f"payments-{topic}")
    lab.produce(lab.source, topic, [(0, None, b"behind")])
    lines = (f"A->B.topics = {topic}", *lab.copy_only)
    young = lab.flow(*lines)
    report = lab.run(young)
    assert (report.exit_code, report.records, report.failed) == (ExitCode.DONE, 10, ())
    code, status, text = shown(lab.config(*lines), "status", young.name)
    (entry,) = status["flows"][0]["open_transactions"]
    assert (code, entry["transactional_id"], entry["state"], entry["overdue"]) == (0, f"payments-{topic}", "Ongoing", False)
    assert (entry["stable_end"], entry["high_watermark"], entry["cluster"]) == (5, 9, young.source.alias)
    assert [part["open_transaction_at"] for part in status["flows"][0]["partitions"]] == [5, None]
    assert "open: cluster" in text

    old = lab.flow(*lines, AT_ONCE)
    for command in ("status", "plan"):
        code, found, text = shown(lab.config(*lines, AT_ONCE), command, old.name)
        assert code == ExitCode.PARTLY_FAILED
        assert f"producer id {entry['producer_id']}, epoch {entry['producer_epoch']}, transactional id payments-{topic}" in text
        assert "from offset 5 on" in text
    (failure,) = found["failed"]
    assert (failure["topic"], failure["partition"], failure["error"]) == (topic, 0, "TransactionHangs")
    lab.produce(lab.source, topic, [(1, None, b"later")])
    for copied in (1, 0):  # a run that copies, and one that has nothing to copy
        report = lab.run(old)
        assert (report.records, report.exit_code) == (copied, ExitCode.PARTLY_FAILED)
        (failed,) = report.failed
        assert (failed.topic, failed.partition, failed.error) == (topic, 0, "TransactionHangs")
    producer.commit_transaction(30)
    report = lab.run(old)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 4)


@pytest.mark.brokers
def test_on_the_target_strangers_are_named_and_own_leftovers_are_settled(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, None, b"first")])
    lines = (f"A->B.topics = {topic}", *lab.copy_only, AT_ONCE)
    flow = lab.flow(*lines)
    assert lab.run(flow).exit_code == ExitCode.DONE
    remote = f"{flow.source.alias}.{topic}"
    left = begun(lab.target, remote, flow.transactional_id(0))  # as a killed run leaves it
    config = lab.config(*lines)
    for command in ("status", "plan"):
        code, found, _ = shown(config, command, flow.name)
        assert (code, (found if command == "plan" else found["flows"][0])["open_transactions"]) == (ExitCode.DONE, [])
    held_at = stable_end(lab.target, remote)
    lab.produce(lab.source, topic, [(0, None, b"second")])
    assert lab.run(flow).exit_code == ExitCode.DONE
    assert stable_end(lab.target, remote) > held_at + 3
    del left

    stranger = begun(lab.target, remote, f"stranger-{topic}")
    lab.produce(lab.source, topic, [(0, None, b"third")])
    report = lab.run(flow)
    (failed,) = report.failed
    assert (failed.topic, failed.partition, failed.error, report.records) == (topic, 0, "TransactionHangs", 1)
    assert f"cluster {flow.target.alias}, {remote}-0" in failed.problem
    assert f"transactional id stranger-{topic}" in failed.problem
    stranger.abort_transaction(30)
    assert lab.run(flow).exit_code == ExitCode.DONE


@pytest.mark.brokers
def test_a_transaction_that_its_coordinator_forgot_is_ended_by_the_command_that_the_report_gives(
    cluster_factory: ClusterFactory,
    topic_factory: TopicFactory,
    config_file: ConfigFile,
    copy_only: tuple[str, ...],
    run_flow: RunFlow,
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """A transactional batch that no coordinator knows of, as brokers without KIP-890 take it; seen with and without the right to."""
    source = cluster_factory(
        properties={"transaction.partition.verification.enable": "false"},
        features=["transaction.version=0"],
        users=USERS,
        authorizer=True,
    )
    topic = topic_factory(source)
    produce(source, topic, [(0, None, b"before")])
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="secret";'
    login = ("A.security.protocol = SASL_PLAINTEXT", "A.sasl.mechanism = PLAIN", "A.sasl.jaas.config = " + jaas)
    lines = (f"A->B.topics = {topic}", *copy_only, AT_ONCE)
    flow, blind = (_flow(config_file(*lines, *(line.format(user) for line in login), source=source, name=user)) for user in USERS)
    append_unended(flow.source, topic, "forgotten")
    produce(source, topic, [(0, None, b"behind")])

    report = run_flow(flow)
    assert (report.records, report.exit_code) == (1, ExitCode.PARTLY_FAILED)
    (failed,) = report.failed
    assert "its coordinator has forgotten it" in failed.problem
    command = failed.problem[failed.problem.index("kafka-transactions.sh") :].partition(" (")[0]

    binding = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:blind", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    administrator = AdminClient(source.client_settings())
    for future in administrator.create_acls([AclBinding(*binding)]).values():
        future.result(30)
    wanted = f"its producers are hidden: grant Read on topic {topic} at cluster {blind.source.alias} to User:blind"
    with open_cluster(blind.source) as opened:
        assert open_transactions(opened, [Key(topic, 0)]) == {(topic, 0): wanted}

    hidden = LastStableLag(topic, 0, blind.source.alias, blind.source.bootstrap, Key(topic, 0), 1, 3, hidden="hidden")
    now = round(time.time() * 1000)
    with administration(blind.source) as admin:
        verdicts = [aged_by_records([hidden], admin, now, warn_ms)[0].overdue for warn_ms in (1, 3_600_000)]
    assert verdicts == [True, False]

    settings = tmp_path / "admin.properties"
    own = "".join(f"{line.format('admin').removeprefix('A.')}\n" for line in login)
    settings.write_text(own, encoding="latin-1")
    _, *options = shlex.split(command)
    tool = [java(), "-cp", f"{tools_jars()}/*", "org.apache.kafka.tools.TransactionsCommand"]
    run = [*tool, options[0], options[1], "--command-config", str(settings), *options[2:]]
    subprocess.run(run, check=True, capture_output=True, timeout=JAVA_SECONDS)
    report = run_flow(flow)
    assert (report.records, report.failed) == (1, ())  # of the three, only the one behind


def _flow(config: Path) -> Flow:
    return load_config(config).flows[0]


@pytest.mark.brokers
def test_a_transaction_that_cannot_be_seen_is_as_young_as_its_records(lab: Lab) -> None:
    """Its records lie behind the last stable offset, where a question for committed records does not look."""
    topic = lab.topic(lab.source)
    now = round(time.time() * 1000)
    producer = Producer(lab.source.client_settings())
    producer.produce(topic, b"before", timestamp=now - 7_200_000)
    producer.flush(30)
    hides = begun(lab.source, topic, f"payments-{topic}")
    source = lab.flow().source
    hidden = LastStableLag(topic, 0, source.alias, source.bootstrap, Key(topic, 0), 1, 2, hidden="hidden")
    with administration(source) as admin:
        verdicts = [aged_by_records([hidden], admin, now + 60_000, warn_ms)[0].overdue for warn_ms in (1, 3_600_000)]
    assert verdicts == [True, False]
    hides.abort_transaction(30)  # whoever looks at the ends of all logs waits for it
