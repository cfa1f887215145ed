"""A message handler chooses topic and partition: every record is where the handler wanted it, exactly once, in order, whatever is lost."""

from __future__ import annotations

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.copying.killed_twice import run_killed_twice
from tests.copying.test_interrupted import BadNetwork
from tests.opened import plan_run, read_receipts, translated_groups
from tools.kafka import SandboxCluster, read_all
from tools.kafka.groups import commit_offsets

from ferry.clusters.admin.describe import TopicDescription
from ferry.config import Flow, load_config
from ferry.copying import driver, lane
from ferry.copying.request import RunRequest
from ferry.copying.rerouting import rerouted_topics
from ferry.errors import ConfigError, ExitCode
from ferry.ledger.counters import ZERO
from ferry.ledger.run_report import RunReport
from ferry.permissions.required import required_rights
from ferry.policy.selection import Selection

RunFlow = Callable[..., RunReport]
SOURCE = """
from dataclasses import replace


class Chooses:
    '''By number: dropped, kept, doubled in a partition of its own, or in one that two source partitions share.'''

    def __init__(self, topic):
        self.topic = topic

    def handle(self, record):
        number = int(record.value.split()[0])
        match number % 7:
            case 0:
                return []
            case 1 | 2:
                return [replace(record, topic=self.topic, partition=record.partition)] * number_of(number)
            case 3:
                return [replace(record, topic=self.topic, partition=2)]
            case _:
                return [record]


def number_of(number):
    return number % 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"choosing_{secrets.token_hex(4)}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.fixture
def topics(lab: Lab) -> tuple[str, str]:
    """The source topic, and the one that the handler may choose."""
    return lab.topic(lab.source, partitions=2), lab.topic(lab.target, partitions=3)


def lines_of(module: str, topics: tuple[str, str]) -> tuple[str, ...]:
    topic, chosen = topics
    handler = (f"ferry.message.handler = {module}:Chooses", f"ferry.message.handler.args = {chosen}", f"ferry.handler.reroute = {chosen}")
    return (f"A->B.topics = {topic}", *handler)


def fill(cluster: SandboxCluster, topic: str, numbers: range, *, size: int = 20, alike: int = 1) -> None:
    """Ten in a row for a partition. The handler's choice changes after at most so many `alike` records, and sometimes earlier."""
    producer = Producer({**cluster.client_settings(), "linger.ms": 5})
    for number in numbers:
        shown = number // alike if number % 3 or alike > 1 else number - number % 7  # not all choices alternate
        producer.produce(topic, (b"%d %d " % (shown, number)).ljust(size, b"x"), b"%d" % number, partition=number // 10 % 2)
        producer.poll(0)
    assert producer.flush(60) == 0


def assert_placed(flow: Flow, topics: tuple[str, str], source: SandboxCluster, target: SandboxCluster) -> None:
    topic, chosen = topics
    upstream = read_all(source.bootstrap, topic)
    remote, elsewhere = read_all(target.bootstrap, f"{flow.source.alias}.{topic}"), read_all(target.bootstrap, chosen)
    shared = []
    for number, records in enumerate(upstream):
        by_choice = {choice: [record.content for record in records if _number(record) % 7 == choice] for choice in range(7)}
        kept = [record.content for record in records if _number(record) % 7 >= 4]
        assert [copy.content for copy in remote[number]] == kept
        wanted = [record.content for record in records if _number(record) % 7 in {1, 2} for _ in range(_number(record) % 7)]
        assert [copy.content for copy in elsewhere[number]] == wanted
        shared.append(by_choice[3])
    found = [copy.content for copy in elsewhere[2]]
    assert Counter(found) == Counter(content for contents in shared for content in contents)
    for contents in shared:
        its = set(contents)
        assert [content for content in found if content in its] == contents, "each source partition keeps its order"
    total = sum((receipt.counters for receipt in read_receipts(flow)), ZERO)
    assert total.records == sum(map(len, remote))
    assert total.rerouted == sum(map(len, elsewhere))
    assert total.records + total.dropped - total.added == sum(map(len, upstream))


def _number(record: object) -> int:
    return int((record.value or b"").split()[0])  # type: ignore[attr-defined]


@pytest.mark.brokers
def test_each_record_is_where_the_handler_wants_it(lab: Lab, module: str, topics: tuple[str, str]) -> None:
    flow = lab.flow(*lines_of(module, topics))
    for first in (0, 300):
        fill(lab.source, topics[0], range(first, first + 300))
        report = lab.run(flow)
        assert report.exit_code is ExitCode.DONE, report.problems()
        assert sum(entry.counters.rerouted for entry in report.partitions) > 100
    assert_placed(flow, topics, lab.source, lab.target)
    # A group that has read up to a record which is elsewhere goes on with the next one that is in the remote topic.
    (upstream, _), (copies, _) = (read_all(lab.source.bootstrap, topics[0]), _remote(flow, topics, lab.target))
    at = next(record for record in upstream if _number(record) % 7 == 3)
    following = next(record for record in upstream if record.offset > at.offset and _number(record) % 7 >= 4)
    group = f"g-{topics[0]}"
    commit_offsets(lab.source.client_settings(), group, {(topics[0], 0): at.offset})
    (position,) = (entry for entry in translated_groups(flow, [group]).positions if entry.partition == 0)
    assert position.translation is not None
    assert position.translation.exact
    assert next(copy for copy in copies if copy.offset >= position.translation.image).content == following.content


def _remote(flow: Flow, topics: tuple[str, str], target: SandboxCluster) -> list[list[object]]:
    return read_all(target.bootstrap, f"{flow.source.alias}.{topics[0]}")  # type: ignore[return-value]


@pytest.mark.long
@pytest.mark.brokers
@pytest.mark.parametrize("seed", range(3))
def test_lost_answers_and_requests(lab: Lab, module: str, topics: tuple[str, str], monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    flow = lab.flow(*lines_of(module, topics), "ferry.lanes = 2")
    fill(lab.source, topics[0], range(600))
    monkeypatch.setattr(lane, "RECOVERY_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(driver, "FIRST_PAUSE_SECONDS", 0.05)
    chance = random.Random(seed)

    def decide(request: object) -> str | None:
        if type(request).__name__ in {"BatchesRequest", "EndTxnRequest", "TxnOffsetCommitRequest"} and chance.random() < 0.08:
            return chance.choice(["lost", "not sent"]) if sum(network.struck.values()) < 8 else None
        return None

    network = BadNetwork(monkeypatch, decide)
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE, report.problems()
    assert network.struck
    assert_placed(flow, topics, lab.source, lab.target)


@pytest.mark.long
@pytest.mark.brokers
def test_the_older_transaction_protocol(cluster_factory: Callable[..., SandboxCluster], lab: Lab, module: str) -> None:
    """Partitions are added to the transaction first; a source partition whose records all go elsewhere is not."""
    target = cluster_factory(features=("transaction.version=0",))
    topics = lab.topic(lab.source, partitions=2), lab.topic(target, partitions=3)
    flow = lab.flow(*lines_of(module, topics), target=target)
    for first in (0, 200):
        fill(lab.source, topics[0], range(first, first + 200))
        report = lab.run(flow)
        assert report.exit_code is ExitCode.DONE, report.problems()
    assert_placed(flow, topics, lab.source, target)


@pytest.mark.long
@pytest.mark.brokers
def test_kills(lab: Lab, module: str, topics: tuple[str, str], tmp_path: Path) -> None:
    """`ferry run` is killed as soon as each of two transactions has been committed, the next one under way."""
    lines = (*lines_of(module, topics), "ferry.transaction.mb = 1", "ferry.lanes = 1")
    flow = lab.flow(*lines)
    fill(lab.source, topics[0], range(6_000), size=1_000, alike=200)
    run_killed_twice(lab.config(*lines), flow, tmp_path)
    assert_placed(flow, topics, lab.source, lab.target)


@pytest.mark.brokers
def test_a_choice_that_the_target_refuses_stops_the_partition_or_skips_the_record(lab: Lab, module: str) -> None:
    topics = lab.topic(lab.source, partitions=2), lab.topic(lab.target, partitions=3, config={"max.message.bytes": "400"})
    producer = Producer({**lab.source.client_settings(), "linger.ms": 5})
    for number, size in ((4, 10), (3, 900), (5, 10), (3, 20), (6, 10)):
        producer.produce(topics[0], (b"%d " % number) + os.urandom(size), partition=0)
    producer.produce(topics[0], b"4 other", partition=1)
    assert producer.flush(30) == 0
    stops = lab.flow(*lines_of(module, topics))
    report = lab.run(stops)
    assert (report.exit_code, [failure.where for failure in report.failed]) == (ExitCode.PARTLY_FAILED, [f"{topics[0]}-0"])
    assert "source offset 1: MESSAGE_TOO_LARGE" in report.failed[0].problem
    assert f"topic {topics[1]}, partition 2, which the handler chose" in report.failed[0].problem
    report = lab.run(lab.flow(*lines_of(module, topics), "ferry.abort.on.send.failure = false"))
    assert [(loss.upstream_start, loss.upstream_end, loss.kind) for loss in report.losses] == [(1, 2, "skipped")]
    assert f"topic {topics[1]}, partition 2" in report.losses[0].reason
    assert [_number(record) for record in _remote(stops, topics, lab.target)[0]] == [4, 5, 6]
    assert [_number(record) for record in read_all(lab.target.bootstrap, topics[1])[2]] == [3]


@pytest.mark.brokers
def test_a_topic_that_is_missing_or_copied_to_is_refused_before_the_first_write(
    flow_factory: Callable[..., Flow],
    module: str,
    topics: tuple[str, str],
) -> None:
    absent = flow_factory(*lines_of(module, (topics[0], "absent")))
    with pytest.raises(ConfigError, match=r"ferry.handler.reroute: topic absent does not exist on b"):
        plan_run(absent, RunRequest(absent.name, "plan"))


@pytest.fixture
def choosing(tmp_path: Path, module: str) -> Callable[..., Flow]:
    def load(names: str, *lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        servers = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true"]
        handler = [f"A->B.ferry.message.handler = {module}:Chooses", "A->B.ferry.message.handler.args = x"]
        path.write_text("\n".join([*servers, *handler, f"A->B.ferry.handler.reroute = {names}", *lines]) + "\n")
        return load_config(path).flows[0]

    return load


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("A.orders", "is a remote topic"),
        ("C.orders", "is a remote topic"),  # another flow has claimed it
        ("orders", "has the name of a topic that is copied from A"),
        ("mm2-ferry-ledger.A.internal", "is an internal topic"),
        ("A.checkpoints.internal", "is an internal topic"),
        ("absent", "does not exist on B"),
    ],
)
def test_topics_that_a_handler_must_not_choose(choosing: Callable[..., Flow], name: str, problem: str) -> None:
    there = {known: TopicDescription(None, 3) for known in ("A.orders", "C.orders", "eu", "orders", "mm2-ferry-ledger.A.internal")}
    selection = Selection((("orders", "A.orders"),), ())
    assert rerouted_topics(choosing("eu"), selection, there, {"C.orders"}) == {"eu": 3}
    with pytest.raises(ConfigError, match=f"ferry.handler.reroute: topic {name} {problem}"):
        rerouted_topics(choosing(f"eu, {name}"), selection, there, {"C.orders"})


@pytest.mark.unit
def test_the_rights_on_these_topics_are_needed(choosing: Callable[..., Flow]) -> None:
    assert "Write" in {right.operation.value for right in required_rights(choosing("eu")).target if right.resource.name == "eu"}
