"""Kafka itself is upgraded while Ferry copies: broker after broker, then the features of both clusters.

The brokers stop in order, as an operator stops them. During each step the connections to the target are slow, so that no step comes after
the end of the copy.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import seed
from tests.drills.bounces.flow import FlowUnderTest
from tests.drills.bounces.results import Row, note
from tests.drills.bounces.test_transactions import IN_TRANSACTION, PARTITIONS, QUICK, SLOW, VALUE_BYTES, any_open, bounce
from tools.kafka.jars import tools_jars
from tools.proxy.rules import Link

from ferry.sandbox.jars import KAFKA_VERSION, java

pytestmark = [
    pytest.mark.bounces,
    # kafka-python leaves sockets open that it could not connect.
    pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning"),
]

OLD, NEW = "3.9.1", KAFKA_VERSION
RECORDS, TOPIC = 100_000, "input"
STEPS = 9  # three brokers a side, and three levels of features
OPEN_SECONDS = 120.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[ProxiedBrokers, ProxiedBrokers]]:
    """Source and target, three brokers each, of the old release."""
    with ExitStack() as running:
        source, target = (running.enter_context(ProxiedBrokers(tmp_path / name, name, version=OLD)) for name in "AB")
        yield source, target


def test_brokers_and_features_are_upgraded_while_a_run_copies(pair: tuple[ProxiedBrokers, ProxiedBrokers], tmp_path: Path) -> None:
    source, target = pair
    source.create(TOPIC, PARTITIONS)
    seed(source.bootstrap, TOPIC, PARTITIONS, RECORDS, IN_TRANSACTION, VALUE_BYTES, random.Random("upgrade"))
    flow = FlowUnderTest(tmp_path, source, target, TOPIC, "inline")
    target.set_link(QUICK)
    with flow:
        step = 0
        for cluster in (source, target):
            for broker in cluster.cluster.nodes.values():
                step = slowed(flow, target, step)
                broker.version = NEW
                bounce(broker, hard=False)
                cluster.cluster.wait_until_in_sync()
                target.set_link(QUICK)
        for level in ("--release-version=4.0", "--feature=transaction.version=1", "--feature=transaction.version=2"):
            step = slowed(flow, target, step)
            for cluster in pair:
                if level == "--feature=transaction.version=1":  # from 2, which the release has
                    features(cluster.bootstrap, "downgrade", level)
                else:
                    await_open(flow, target) if cluster is target else None
                    features(cluster.bootstrap, "upgrade", level)
            target.set_link(QUICK)
        assert flow.arrival.count(TOPIC) < RECORDS, "the copy was over before the last step"
        behind = flow.wait_for({TOPIC: RECORDS})
    target.set_link(Link())
    verdict = flow.judge([TOPIC])
    done = f"{OLD} to {NEW}, broker by broker; transaction.version 1 to 2 with a transaction open"
    note(Row("rolling upgrade", "both clusters", done, verdict, behind, dict(flow.copier.exits), flow.hanging, told=flow.copier.told))
    for cluster in pair:
        assert "FinalizedVersionLevel: 2" in next(
            line for line in features(cluster.bootstrap, "describe").splitlines() if "Feature: transaction.version" in line
        )
    assert verdict.records == RECORDS
    assert verdict.exact, verdict
    assert set(flow.copier.exits) == {0}, flow.copier.told


def slowed(flow: FlowUnderTest, target: ProxiedBrokers, step: int) -> int:
    """Wait until the copy has come as far as the next step, then slow it down; the step after it."""
    flow.wait_for({TOPIC: RECORDS * step // (STEPS + 2)})
    target.set_link(SLOW)
    assert flow.arrival.count(TOPIC) < RECORDS, "the copy was over before the step"
    return step + 1


def await_open(flow: FlowUnderTest, target: ProxiedBrokers) -> None:
    """Return when a lane's transaction is open."""
    deadline = time.monotonic() + OPEN_SECONDS
    while not any_open(target.bootstrap, flow.lanes):
        assert time.monotonic() < deadline, "no transaction was open"


def features(bootstrap: str, *arguments: str) -> str:
    """What Kafka's own tool says; it must succeed."""
    tool = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{tools_jars()}/*", "org.apache.kafka.tools.FeatureCommand"]
    done = subprocess.run([*tool, "--bootstrap-server", bootstrap, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
