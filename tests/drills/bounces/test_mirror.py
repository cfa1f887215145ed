"""The experiments of AppsFlyer's kafka-mirror-tester, one after the other on the same flow, while records keep coming.

A record says who sent it, as which one, and when: gaps are losses, repetitions duplicates, and how late it is goes into a histogram. Both
sides and all records are compared once more at the end.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import Feeder
from tests.drills.bounces.flow import FlowUnderTest
from tests.drills.bounces.results import Row, note
from tests.drills.bounces.scenarios import FIRST_TOPIC, PARTITIONS, SCENARIOS, Act, Stage
from tests.drills.bounces.verdict import histogram

# kafka-python, by which the test gives orders to brokers that are being bounced, leaves sockets open that it could not connect.
SOCKETS = pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.bounces, SOCKETS]

RATE = 300
VALUE_BYTES = 1_000
SEED = 20_261_121
# Seconds; a record is on its way for at least what is left of the run before its own.
BOUNDS = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
WARM = 500


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Three brokers a side, and a flow that runs all the time."""
    directory = tmp_path_factory.mktemp("mirror")
    with ExitStack() as running:
        source, target = (running.enter_context(ProxiedBrokers(directory / name, name, seed=SEED)) for name in "AB")
        source.create(FIRST_TOPIC, PARTITIONS)
        flow = running.enter_context(FlowUnderTest(directory, source, target, "topic.*", "inline"))
        yield Stage(source, target, flow, random.Random(SEED), Feeder("", "", 0, 0, {}))


@pytest.mark.parametrize(("name", "act"), SCENARIOS, ids=[name.replace(" ", "-") for name, _ in SCENARIOS])
def test_mirror(name: str, act: Act, stage: Stage) -> None:
    flow, exits, hanging = stage.flow, stage.flow.copier.exits.copy(), stage.flow.hanging
    before, told = len(flow.arrival.latencies), len(flow.copier.told)
    targets = stage.feeder.targets or {FIRST_TOPIC: PARTITIONS}
    stage.feeder = Feeder(stage.source.bootstrap, name.replace(" ", "-"), RATE, VALUE_BYTES, targets)
    stage.feeder.start()
    flow.wait_for({FIRST_TOPIC: stage.sent.get(FIRST_TOPIC, 0) + WARM})
    done = act(stage)
    behind = flow.wait_for(stage.acked)
    stage.feeder.finish()
    stage.sent = stage.acked
    stage.feeder.acked.clear()
    assert stage.feeder.failed == []
    flow.wait_for(stage.sent)
    verdict = flow.judge(stage.sent, stage.feeder.label)
    late = sorted(flow.arrival.latencies[before:])
    more = f"median {statistics.median(late):.1f} s, 99 % {late[int(len(late) * 0.99)]:.1f} s, up to {BOUNDS} s and more: "
    more += str(histogram(late, BOUNDS))
    failed = flow.copier.told[told:]
    note(Row("kafka-mirror-tester", name, done, verdict, behind, dict(flow.copier.exits - exits), flow.hanging - hanging, more, failed))
    assert verdict.exact, verdict
    assert verdict.records > WARM


def test_all_of_it(stage: Stage) -> None:
    """Nothing came twice, or late into another scenario."""
    verdict = stage.flow.judge(stage.sent)
    assert verdict.exact, verdict
    assert verdict.records == sum(stage.sent.values())
