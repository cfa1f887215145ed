"""Outages on three brokers a side while a flow copies: one broker that hangs or dies costs no run, a side that is gone ends it once.

Each case has a topic and a flow of its own. The links to the target are slow once a run has planned, so that no outage comes too late.
"""

from __future__ import annotations

import random
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from tests.drills.bounces.clusters import ProxiedBrokers
from tests.drills.bounces.feeding import seed
from tests.drills.bounces.flow import FlowUnderTest
from tests.drills.bounces.results import Row, note
from tools.kafka import SandboxCluster
from tools.proxy.rules import Link
from tools.spark.standalone import kill, standalone

# kafka-python, by which the test gives orders to brokers that are being bounced, leaves sockets open that it could not connect.
SOCKETS = pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.bounces, SOCKETS]

RECORDS, PARTITIONS, IN_TRANSACTION, VALUE_BYTES = 12_000, 4, 1_000, 400
BEGUN = 0.1
SLOW, FREE = Link(bytes_per_second=40_000), Link()
# Longer than a broker's session (9 s): its partitions get other leaders.
AWAY_SECONDS = 12.0
FROZEN_SECONDS = 30.0
PLANS = 10
# Of a whole side: a run must have ended by itself meanwhile. One patience of 75 s, a look at each side, and what a loaded machine adds.
ENDED_SECONDS = 280.0
AGAIN_SECONDS = 180.0
POLL_SECONDS = 0.2
# No file of a broker may grow beyond this: every write of a log fails, as on a full disk.
FULL_BYTES = 1_024
Pair = tuple[ProxiedBrokers, ProxiedBrokers]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Source and target, three brokers each."""
    directory = tmp_path_factory.mktemp("outages")
    with ExitStack() as running:
        source, target = (running.enter_context(ProxiedBrokers(directory / name, name)) for name in "AB")
        yield source, target


@pytest.fixture
def topic(pair: Pair, request: pytest.FixtureRequest) -> str:
    """A source topic of this case."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    pair[0].create(name, PARTITIONS)
    seed(pair[0].bootstrap, name, PARTITIONS, RECORDS, IN_TRANSACTION, VALUE_BYTES, random.Random(name))
    return name


class Case:
    """A flow that is copying slowly when the outage begins, and what came of it."""

    def __init__(
        self,
        directory: Path,
        pair: Pair,
        topic: str,
        master: str = "inline",
        *,
        servers: tuple[str, str] = ("", ""),
        default_replicas: bool = False,
    ) -> None:
        self.topic, self.target = topic, pair[1]
        self._broken = time.monotonic()
        self.flow = FlowUnderTest(directory, *pair, topic, master, servers=servers, default_replicas=default_replicas)

    def __enter__(self) -> Case:
        self.flow.__enter__()
        try:
            self.flow.copier.wait_until_at_work()
        except BaseException as problem:
            self.__exit__(type(problem), problem, None)
            raise
        self.target.set_link(SLOW)
        return self

    def __exit__(self, *details: object) -> None:
        self.target.set_link(FREE)
        self.flow.__exit__(*details)  # type: ignore[arg-type]

    def begun(self) -> None:
        """Return when a part of the records has arrived."""
        self.flow.wait_for({self.topic: int(RECORDS * BEGUN)})
        self._broken = time.monotonic()
        assert self.flow.arrival.count(self.topic) < RECORDS, "the copy was over before the outage"

    def ended(self) -> str:
        """Return when a run has ended by itself, and how. Not by the signal of whoever watches over it."""
        copier, since = self.flow.copier, time.monotonic()
        before = copier.exits.total()
        until(lambda: bool(copier.problem) or copier.exits.total() > before, ENDED_SECONDS)
        assert not copier.problem, copier.problem
        assert min(copier.exits) >= 0, copier.exits
        return f"the run ended by itself {time.monotonic() - since:.0f} s later"

    def over(self, done: str, codes: set[int]) -> None:
        """All has arrived, once and in order, and runs ended with these codes only."""
        self.target.set_link(FREE)
        behind = self.flow.wait_for({self.topic: RECORDS})
        self.flow.copier.finish()
        done += f"; the last run ended {time.monotonic() - self._broken:.0f} s after the outage began"
        verdict, exits = self.flow.judge([self.topic]), self.flow.copier.exits
        note(Row("outages", self.topic, done, verdict, behind, dict(exits), self.flow.hanging, told=self.flow.copier.told))
        assert verdict.exact, verdict
        assert verdict.records == RECORDS
        assert set(exits) <= codes, (exits, self.flow.copier.told)


@contextmanager
def hanging_server() -> Iterator[str]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as hanging:
        yield f"127.0.0.1:{hanging.getsockname()[1]}"


def test_a_bootstrap_server_that_hangs(pair: Pair, topic: str, tmp_path: Path) -> None:
    with hanging_server() as first, hanging_server() as second, Case(tmp_path, pair, topic, servers=(first, second)) as case:
        case.begun()
        case.target.set_link(FREE)
        case.flow.wait_for({topic: RECORDS})
        program, _, config, *flow = case.flow.copier.command[: case.flow.copier.command.index("--master")]
        without = tmp_path / "without.properties"
        text = Path(config).read_text(encoding="latin-1").replace(f"{first},", "").replace(f"{second},", "")
        without.write_text(text, encoding="latin-1")
        seconds: dict[Path, list[float]] = {Path(config): [], without: []}
        for _ in range(PLANS):
            for file, taken in seconds.items():
                since = time.monotonic()
                ended = subprocess.run([program, "plan", file, *flow], check=False, capture_output=True, text=True)
                taken.append(time.monotonic() - since)
                assert not ended.returncode, ended.stderr
        beside, alone = map(max, seconds.values())
        told = f"{PLANS} plans besides all succeeded, in {beside:.1f} s at most; without that server in {alone:.1f} s at most"
        case.over(f"first of the bootstrap servers on both sides; {told}", {0})


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_a_frozen_broker(side: int, pair: Pair, topic: str, tmp_path: Path) -> None:
    with Case(tmp_path, pair, topic) as case:
        case.begun()
        cluster = pair[side].cluster
        name = topic if side == 0 else f"{case.flow.alias}.{topic}"
        leader = cluster.leaders(name)[0]
        cluster.nodes[leader].pause()
        try:
            time.sleep(FROZEN_SECONDS)
        finally:
            cluster.nodes[leader].resume()
        case.over(f"a leader stopped (SIGSTOP) for {FROZEN_SECONDS:.0f} s", {0})
        cluster.wait_until_in_sync()


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_the_controller_is_killed(side: int, pair: Pair, topic: str, tmp_path: Path) -> None:
    with Case(tmp_path, pair, topic) as case:
        case.begun()
        cluster = pair[side].cluster
        active = controller(cluster.bootstrap)
        cluster.nodes[active].kill()
        time.sleep(AWAY_SECONDS)
        cluster.nodes[active].run()
        cluster.wait_until_in_sync()
        case.over(f"broker {active}, the active controller, killed, {AWAY_SECONDS:.0f} s later started again", {0})


def test_brokers_that_were_away_get_their_leaders_back(pair: Pair, topic: str, tmp_path: Path) -> None:
    away = [(cluster.cluster, cluster.cluster.leaders(topic)[0] if cluster is pair[0] else 1) for cluster in pair]
    for cluster, node in away:
        cluster.nodes[node].kill()
    until(lambda: away[0][1] not in away[0][0].leaders(topic).values(), AGAIN_SECONDS)
    with Case(tmp_path, pair, topic) as case:
        case.begun()
        before = case.flow.copier.exits.total()
        for cluster, node in away:
            cluster.nodes[node].run()
        for cluster, _ in away:
            cluster.wait_until_in_sync()
            client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
            client.elect_leaders(0, raise_errors=False)
            client.close()
        assert away[0][1] in away[0][0].leaders(topic).values()
        assert case.flow.arrival.count(topic) < RECORDS
        assert case.flow.copier.exits.total() == before, "the run that knew other leaders is over"
        case.over("a broker a side was away when the lanes connected, came back, and leads again by a preferred election", {0})


@pytest.mark.parametrize(("side", "full"), [(1, True), (1, False), (0, False)], ids=["target-disks-full", "target-gone", "source-gone"])
def test_a_whole_side(side: int, full: bool, pair: Pair, topic: str, tmp_path: Path) -> None:
    with Case(tmp_path, pair, topic) as case:
        case.begun()
        nodes = pair[side].cluster.nodes.values()
        for node in nodes:
            if full:
                psutil.Process(node.pid).rlimit(psutil.RLIMIT_FSIZE, (FULL_BYTES, psutil.RLIM_INFINITY))
            else:
                node.kill()
        try:
            ended = case.ended()
        finally:  # the next case needs them
            left = sum(node.answers() for node in nodes)
            for node in nodes:
                node.kill()
            with ThreadPoolExecutor(len(nodes)) as pool:  # none answers without a second one
                list(pool.map(SandboxCluster.run, nodes))
        pair[side].cluster.wait_until_in_sync()
        # The last one has nobody to elect it, so it writes nothing, and may stay: it answers, and can do nothing.
        how = f"out of disk space, {3 - left} of which shut down by themselves" if full else "killed"
        case.over(f"all three brokers {how}; {ended}; then started again", {0, 3})
        assert case.flow.copier.exits[3] >= 1


def test_an_executor_dies_while_others_copy(pair: Pair, topic: str, tmp_path: Path) -> None:
    with standalone(tmp_path, workers=2) as spark, Case(tmp_path, pair, topic, spark.master) as case:
        case.begun()
        before = len(case.flow.copier.said)
        kill(psutil.Process(spark.workers_started[0].pid).children(recursive=True))
        until(lambda: any(line.startswith("trying ") for line in case.flow.copier.said[before:]), AGAIN_SECONDS)
        assert not case.flow.copier.exits.total()
        said = "\n".join(case.flow.copier.said)
        others = int(re.findall(r"trying \d+ lanes again, beside (\d+) others?:", said)[0])
        assert others, "the other lanes had ended"
        case.over("the executor of half of the lanes killed; they ran again while the others were copying", {0})


def test_the_first_run_while_two_of_three_brokers_are_down(pair: Pair, topic: str, tmp_path: Path) -> None:
    with ProxiedBrokers(tmp_path / "C", "C", brokers=1, spare=2) as target:
        late = [target.cluster.add(), target.cluster.add()]
        for node in late:
            node.kill()
        until(lambda: len(AdminClient(target.cluster.client_settings()).list_topics(timeout=30).brokers) == 1, AGAIN_SECONDS)
        with Case(tmp_path, (pair[0], target), topic, default_replicas=True) as case:
            case.begun()
            replicas = topics_of(target, case.flow.alias)
            assert len(replicas) > 1
            wanted = {name: 2 if name.startswith(case.flow.alias) else 3 for name in replicas}  # MirrorMaker 2's default, and Ferry's
            assert replicas == wanted
            for node in late:
                node.run()
            target.cluster.wait_until_in_sync()
            case.over("topics were created with the replicas of Ferry's defaults, 2 and 3; then the others were started", {0})


def topics_of(target: ProxiedBrokers, alias: str) -> dict[str, int]:
    """Replicas of every topic of the flow."""
    listed = AdminClient(target.cluster.client_settings()).list_topics(timeout=30).topics
    return {name: len(topic.partitions[0].replicas) for name, topic in listed.items() if alias in name}


def controller(bootstrap: str) -> int:
    """The active one of a KRaft quorum."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = client.describe_metadata_quorum()
    finally:
        client.close()
    return int(described["topics"][0]["partitions"][0]["leader_id"])


def until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)
