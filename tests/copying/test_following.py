"""Runs that follow, on real brokers: they copy what arrives until another run takes the flow over, and nothing is lost on the way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import Lab
from tests.opened import copy_run, flow_status, read_receipts, write_tombstones
from tests.waiting import until
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.reading import NotReadable, partition_bounds
from tools.kafka.topics import delete_topics, grow_topic

from ferry.config import load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.ledger.receipts import ReceiptKind
from ferry.monitoring.runs_reading import read_runs
from ferry.pipeline.run import open_run
from ferry.verify.comparison import NotCovered
from ferry.verify.verify_report import COMPACTION, VerifyReport

pytestmark = pytest.mark.brokers

FERRY = str(Path(sys.executable).with_name("ferry"))
# Longer than any test: another run or a signal ends the run.
LONG = "20m"
# A loaded machine starts Python and copies in a fraction of it.
WAIT_SECONDS = 300.0


class Following:
    """A run that follows, in a process of its own."""

    def __init__(self, config: Path, flow: str, *options: str) -> None:
        command = [FERRY, "run", str(config), "--flow", flow, "--master", "inline", "--follow", LONG, "--json", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self) -> tuple[int, dict[str, Any]]:
        """Exit code and report."""
        document, said = self.process.communicate(timeout=WAIT_SECONDS)
        assert document, said
        return self.process.returncode, json.loads(document)


@contextmanager
def following(config: Path, flow: str, *options: str) -> Iterator[Following]:
    """It does not outlive its test."""
    run = Following(config, flow, *options)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.kill()
            run.process.communicate()


def fill(cluster: SandboxCluster, topic: str, partitions: Sequence[int], records: int) -> None:
    producer = Producer({**cluster.client_settings(), "linger.ms": 5, "acks": "all"})
    for number in range(records):
        producer.produce(topic, f"{number}".encode() * 20, partition=partitions[number % len(partitions)])
    assert producer.flush(60) == 0


def held(cluster: SandboxCluster, topic: str) -> int:
    """Readable offsets of a topic that may not exist yet."""
    try:
        return sum(end for _, end in partition_bounds(cluster.bootstrap, topic).values())
    except NotReadable:
        return 0


def wait_for_more(run: Following, cluster: SandboxCluster, topic: str, before: int) -> int:
    """Return when the topic has grown."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (now := held(cluster, topic)) <= before:
        assert run.process.poll() is None, run.process.communicate()
        assert time.monotonic() < deadline, f"nothing arrives in {topic}"
        time.sleep(0.05)
    return now


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=3)


def last_run(config: Path, flow: str) -> dict[str, Any]:
    """The report of a run that takes the flow over; one that does not follow and finds nothing to copy would leave it where it is."""
    command = [FERRY, "run", str(config), "--flow", flow, "--master", "inline", "--follow", "1s", "--json"]
    document: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return document


def test_what_arrives_is_copied_until_another_run_takes_over(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    fill(lab.source, topic, [0, 1], 300)
    with following(config, flow.name) as run:
        seen = 0
        for _ in range(5):  # also in a partition in which nothing was when the run began
            seen = wait_for_more(run, lab.target, remote, seen)
            fill(lab.source, topic, [0, 1, 2], 30)
        told = flow_status(flow).following
        assert told is not None
        newer = last_run(config, flow.name)
        code, report = run.ended()
    assert (code, report["taken_over"], report["failed"]) == (0, newer["run_id"], [])
    assert told["run_id"] == report["run_id"]
    assert report["totals"]["records"] + newer["totals"]["records"] == 450
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 450), found.differences[:3]
    receipts = [receipt for receipt in read_receipts(flow) if receipt.run_id == report["run_id"] and receipt.kind is ReceiptKind.COPIED]
    assert max(receipt.counters.transactions for receipt in receipts) > 1, "a receipt grew"
    assert len(receipts) == len({(receipt.topic, receipt.partition) for receipt in receipts}), "one for each partition"


@pytest.mark.parametrize("master", ["inline", pytest.param("local[2]", marks=pytest.mark.long)])  # where two lanes hold both cores
def test_new_topics_and_partitions_are_copied_too(master: str, topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}, {topic}-new", "A->B.refresh.topics.interval.seconds = 1", *lab.copy_only)
    flow = load_config(config).flows[0]
    fill(lab.source, topic, [0], 10)
    with following(config, flow.name, "--master", master) as run:
        wait_for_more(run, lab.target, f"{flow.source.alias}.{topic}", 0)
        new = lab.topic(lab.source, partitions=2, name=f"{topic}-new")
        fill(lab.source, new, [0, 1], 20)
        grow_topic(lab.source.client_settings(), topic, 4)
        fill(lab.source, topic, [3], 10)
        wait_for_more(run, lab.target, f"{flow.source.alias}.{new}", 0)
        wait_for_more(run, lab.target, f"{flow.source.alias}.{topic}", 15)
        newer = last_run(config, flow.name)
        code, report = run.ended()
    assert (code, report["taken_over"]) == (0, newer["run_id"])
    assert new not in [entry["what"] for entry in report["skipped"]], "it is there by now"
    pairs = {name: f"{flow.source.alias}.{name}" for name in (topic, new)}
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, pairs)
    assert (found.equal, found.records) == (True, 40), found.differences[:3]


def test_a_run_that_follows_waits_for_the_first_topic(lab: Lab) -> None:
    name = f"later-{uuid4().hex}"
    config = lab.config(f"A->B.topics = {name}", "A->B.refresh.topics.interval.seconds = 1", *lab.copy_only)
    flow = load_config(config).flows[0]
    with following(config, flow.name) as run:
        until(lambda: flow_status(flow).following or run.process.poll() is not None)
        fill(lab.source, lab.topic(lab.source, name=name), [0], 10)
        wait_for_more(run, lab.target, f"{flow.source.alias}.{name}", 0)
        until(lambda: compare_topics(lab.source.bootstrap, lab.target.bootstrap, {name: f"{flow.source.alias}.{name}"}).equal)
        newer = last_run(config, flow.name)
        code, report = run.ended()
    assert (code, report["taken_over"], report["totals"]["records"]) == (0, newer["run_id"], 10)


def test_a_run_that_follows_takes_over_from_one_that_follows_and_a_killed_one_leaves_nothing_undone(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    fill(lab.source, topic, [0, 1], 100)
    with ExitStack() as running:
        first = running.enter_context(following(config, flow.name))
        seen = wait_for_more(first, lab.target, remote, 0)
        second = running.enter_context(following(config, flow.name))
        code, report = first.ended()
        assert (code, report["failed"]) == (0, [])
        fill(lab.source, topic, [0, 1, 2], 60)
        wait_for_more(second, lab.target, remote, max(seen, 110))
        follows = flow_status(flow).following
        assert follows is not None
        second.process.kill()
        second.process.communicate()
        told = flow_status(flow)
        assert told.following is None
        assert told.gone == follows, "it left no result, but it proves no more that it holds the flow"
        assert [run["state"] for run in read_runs(flow)["runs"] if run["run_id"] == follows["run_id"]] == ["failed"]
    last_run(config, flow.name)
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 160), found.differences[:3]


def test_a_topic_that_is_deleted_stops_alone(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}.*", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    gone = lab.topic(lab.source, name=f"{topic}-gone")
    fill(lab.source, topic, [0], 10)
    fill(lab.source, gone, [0], 10)
    with following(config, flow.name) as run:
        wait_for_more(run, lab.target, f"{flow.source.alias}.{gone}", 0)
        seen = wait_for_more(run, lab.target, remote, 0)
        delete_topics(lab.source.client_settings(), gone)
        for line in run.process.stderr or ():
            if f"{gone}-0 stops" in line:
                assert "SourceMissing" in line
                break
        fill(lab.source, topic, [0, 1], 20)
        wait_for_more(run, lab.target, remote, seen)
        last_run(config, flow.name)
        code, report = run.ended()
    assert [(failure["topic"], failure["error"]) for failure in report["failed"]] == [(gone, "SourceMissing")]
    assert code == ExitCode.PARTLY_FAILED
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 30), found.differences[:3]


@pytest.mark.parametrize("other_way", ["from the beginning", "later", "never"])
def test_topics_that_keep_their_names_do_not_go_round(other_way: str, topic: str, lab: Lab) -> None:
    """Both clusters get records of their own while a flow in each direction follows."""
    policy = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    config = lab.config(f"A->B.topics = {topic}", f"B->A.topics = {topic}", "B->A.enabled = true", policy, *lab.copy_only)
    there, back = (flow.name for flow in load_config(config).flows)
    clusters, written = (lab.source, lab.target), Counter[bytes]()

    def write(cluster: SandboxCluster, records: int) -> None:
        producer = Producer({**cluster.client_settings(), "linger.ms": 5, "acks": "all"})
        for number in range(records):
            value = f"{cluster.name} {len(written)}".encode()
            written[value] += 1
            producer.produce(topic, value, partition=number % 3)
        assert producer.flush(60) == 0

    def found() -> list[Counter[bytes]]:
        return [Counter(record.value or b"" for part in read_all(cluster.bootstrap, topic) for record in part) for cluster in clusters]

    write(lab.source, 50)
    with following(config, there) as run, ExitStack() as scope:
        wait_for_more(run, lab.target, topic, 0)
        if other_way == "from the beginning":
            scope.enter_context(following(config, back))
        for number in range(6):
            write(lab.source, 40)
            if other_way == "later" and number == 3:
                scope.enter_context(following(config, back))
            if other_way != "never":
                write(lab.target, 40)
        until(lambda: found()[1] == written, lambda: written - found()[1])
        if other_way != "never":
            until(lambda: found()[0] == written, lambda: written - found()[0])
        write(lab.source, 1)  # what had gone round once more would be before it
        until(lambda: all(counter >= written for counter in found()[other_way == "never" :]))
        assert found()[1] == written
        assert run.process.poll() is None
    if other_way != "never":
        assert found() == [written, written]


def test_another_try_does_not_take_the_flow_back(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    fill(lab.source, topic, [0], 10)
    with ExitStack() as running:
        first = running.enter_context(following(config, flow.name))
        wait_for_more(first, lab.target, remote, 0)
        second = running.enter_context(following(config, flow.name))
        _, report = first.ended()
        request = RunRequest(flow.name, report["run_id"], follow_until=datetime.now(UTC) + timedelta(minutes=20))
        with open_run(flow, request) as again:
            again.copy(InlineLaneRunner(), print)
            assert again.report().taken_over == report["taken_over"]
        seen = held(lab.target, remote)
        fill(lab.source, topic, [0], 10)
        wait_for_more(second, lab.target, remote, seen)


def test_a_run_that_does_not_follow_has_the_flow_only_for_a_while(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    fill(lab.source, topic, [0], 10)
    with following(config, flow.name) as run:
        wait_for_more(run, lab.target, remote, 0)
        until(lambda: compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote}).equal)
        compacted = VerifyReport(
            flow.name, "verify", "", "", counts={"undeleted": 1}, not_covered=(NotCovered(topic, 0, 0, 9, f"{COMPACTION}1 record"),)
        )
        for number in range(3):
            if number:
                copy_run(flow, RunRequest(flow.name, f"short-{number}"), InlineLaneRunner(), print)
            else:
                write_tombstones(flow, compacted, "tombstones", print)
            fill(lab.source, topic, [0, 1], 20)
            until(lambda: compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote}).equal)
        newer = last_run(config, flow.name)
        code, report = run.ended()
    assert (code, report["taken_over"], report["totals"]["records"]) == (0, newer["run_id"], 70)
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 70), found.differences[:3]


def test_a_quiet_remote_topic_that_is_created_again_is_noticed(topic: str, lab: Lab) -> None:
    config = lab.config(f"A->B.topics = {topic}", *lab.copy_only)
    flow = load_config(config).flows[0]
    remote = f"{flow.source.alias}.{topic}"
    fill(lab.source, topic, [0], 10)
    with following(config, flow.name) as run:
        wait_for_more(run, lab.target, remote, 0)
        delete_topics(lab.target.client_settings(), remote)
        admin = AdminClient(lab.target.client_settings())
        admin.create_topics([NewTopic(remote, 3, 1)])[remote].result(30)
        told = next(line for line in run.process.stderr or () if "stops: TargetRecreated" in line)
    assert f"{topic}-0" in told
