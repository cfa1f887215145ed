"""Apache Kafka's transactions_test, with Ferry as the copier: brokers and copiers are bounced, hard and clean, while it copies.

Scenario and numbers are those of tests/kafkatest/tests/core/transactions_test.py: 100,000 seed records in 2 partitions, 750 a transaction,
three brokers, three replicas of which two must acknowledge; each broker, or the copier, is bounced three times, each time after another
20 % has arrived. Then the output must equal the input, without duplicates, for a reader afterwards and for one that read all along. Added
here: two clusters, either of which is bounced; aborted transactions in the source; the order of every partition, always.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import seed
from tests.drills.bounces.flow import FlowUnderTest
from tests.drills.bounces.results import Row, note
from tests.drills.faults.watching import OpenTransactions
from tools.kafka import SandboxCluster
from tools.proxy.rules import Link

# kafka-python, by which the test gives orders to brokers that are being bounced, leaves sockets open that it could not connect.
SOCKETS = pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.bounces, SOCKETS]

RECORDS = 100_000
PARTITIONS = 2
IN_TRANSACTION = 750
VALUE_BYTES = 400
BOUNCES = 3
STEP = 0.2
# Of each broker's link: what is quick enough to go on, and what keeps a copy from ending while something is bounced.
QUICK = Link(bytes_per_second=1_500_000)
SLOW = Link(bytes_per_second=60_000)
# A killed broker stays away for longer than its session (9 s): its partitions get other leaders.
AWAY_SECONDS = 12.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProxiedBrokers, ProxiedBrokers]]:
    """Source and target, three brokers each."""
    directory = tmp_path_factory.mktemp("transactions")
    with ExitStack() as running:
        source, target = (running.enter_context(ProxiedBrokers(directory / name, name)) for name in "AB")
        yield source, target


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "clean"])
@pytest.mark.parametrize("struck", ["copier", "target", "source"])
def test_transactions(struck: str, hard: bool, pair: tuple[ProxiedBrokers, ProxiedBrokers], tmp_path: Path) -> None:
    source, target = pair
    dice = random.Random(f"{struck} {hard}")
    topic = f"input-{struck}-{'hard' if hard else 'clean'}"
    source.create(topic, PARTITIONS)
    aborted = seed(source.bootstrap, topic, PARTITIONS, RECORDS, IN_TRANSACTION, VALUE_BYTES, dice)
    assert aborted > 0
    # Spark's whole process tree where that is what is bounced; else the lanes run in the process of `ferry run`.
    flow = FlowUnderTest(tmp_path, source, target, topic, "local[2]" if struck == "copier" else "inline")
    inside = 0

    def bounce_copier(_: int) -> None:
        flow.copier.bounce(signal.SIGKILL if hard else signal.SIGTERM, dice.uniform(0.0, 3.0))

    def bounce_broker(number: int) -> None:
        cluster = {"source": source, "target": target}[struck].cluster
        bounce(list(cluster.nodes.values())[number], hard=hard)
        cluster.wait_until_in_sync()

    act: Callable[[int], None] = bounce_copier if struck == "copier" else bounce_broker
    target.set_link(QUICK)
    with flow:
        for number in range(BOUNCES):
            flow.wait_for({topic: int(RECORDS * STEP * (number + 1))})
            target.set_link(SLOW)
            assert flow.arrival.count(topic) < RECORDS, "the copy was over before the bounce"
            inside += any_open(target.bootstrap, flow.lanes)
            act(number)
            target.set_link(QUICK)
        assert flow.arrival.count(topic) < RECORDS, "the copy was over before the last bounce"
        behind = flow.wait_for({topic: RECORDS})
    target.set_link(Link())
    verdict = flow.judge([topic])
    how = f"{'hard' if hard else 'clean'} bounces of the {struck}{'' if struck == 'copier' else ' brokers'}"
    done = f"{BOUNCES} bounces, {inside} of them with a transaction open; {aborted:,} aborted records in the source"
    note(Row("transactions_test", how, done, verdict, behind, dict(flow.copier.exits), flow.hanging, told=flow.copier.told))
    assert verdict.records == RECORDS
    assert verdict.exact, verdict
    assert inside or struck == "source"
    assert flow.copier.exits[0] >= 1


def any_open(bootstrap: str, lanes: str) -> bool:
    """Whether a lane's transaction is open; asked by a client that is gone before a broker is: it would try to reach that for good."""
    client = OpenTransactions(bootstrap, lanes)
    try:
        return client.count() > 0
    finally:
        client.close()


def bounce(broker: SandboxCluster, *, hard: bool) -> None:
    """Down and up again."""
    if hard:
        broker.kill()
        time.sleep(AWAY_SECONDS)
    else:
        broker.stop()
    broker.run()
