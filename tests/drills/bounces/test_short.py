"""Both suites in short, in every test run: one broker a side, a bad network, answers lost around EndTxn, copier and target killed once."""

from __future__ import annotations

import random
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import seed
from tests.drills.bounces.flow import FlowUnderTest
from tools.proxy.rules import END_TXN, PRODUCE, Action, Link, Rule

pytestmark = [pytest.mark.faults, pytest.mark.brokers]

RECORDS = 10_000
PARTITIONS = 2
# Until all has arrived, of 4 MB.
NARROW = Link(bytes_per_second=500_000, delay=0.01, jitter=0.01, loss=0.02)


@pytest.mark.long
def test_killed_cut_off_and_asked_again(tmp_path: Path) -> None:
    dice = random.Random(7)
    with ExitStack() as running:
        source, target = (running.enter_context(ProxiedBrokers(tmp_path / name, name, brokers=1, seed=7)) for name in "AB")
        source.create("topic", PARTITIONS)
        assert seed(source.bootstrap, "topic", PARTITIONS, RECORDS, 750, 400, dice) > 0
        proxy = target.proxies[1]
        target.set_link(NARROW)
        with FlowUnderTest(tmp_path, source, target, "topic", "inline") as flow:
            mine = flow.lanes.encode()
            # In turn: the answer to a commit is lost, a commit is late, a batch's answer is lost.
            met = [
                proxy.add(Rule(END_TXN, Action.CUT_AFTER, containing=mine)),
                proxy.add(Rule(END_TXN, Action.DELAY_REQUEST, seconds=3, containing=mine)),
                proxy.add(Rule(PRODUCE, Action.CUT_AFTER, skip=5)),
            ]
            flow.wait_for({"topic": 1})
            flow.copier.bounce(signal.SIGKILL, dice.uniform(0.0, 1.0))
            flow.wait_for({"topic": RECORDS // 2})
            assert flow.arrival.count("topic") < RECORDS
            target.cluster.nodes[1].kill()
            target.cluster.nodes[1].run()
            source.proxies[1].cut()
            target.set_link(Link())
            flow.wait_for({"topic": RECORDS})
        assert [rule.hits for rule in met] == [1, 1, 1]
        verdict = flow.judge(["topic"])
        assert verdict.exact, verdict
        assert verdict.records == RECORDS
        assert flow.copier.exits[-signal.SIGKILL] == 1
