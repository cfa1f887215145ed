"""A run of Ferry in a world of two simulated clusters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import Fetch, Produce
from tests.simulation.asks_of_admins import Metadata
from tests.simulation.batches import records
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.ferry_in_a_world import entered, flow_between, run_flow
from tests.simulation.state import Settings
from tests.simulation.world import World

from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import FerryError, RetryRule

pytestmark = pytest.mark.unit
TOPIC = "orders"


def _values(cluster: SimulatedCluster, topic: str) -> list[list[bytes | None]]:
    """All records, by partition, without markers."""
    parts = cluster.topic(topic).partitions
    return [[one.value for kept in part.log.batches if not kept.is_control for one in records(kept)] for part in parts]


def _clusters(world: World) -> tuple[SimulatedCluster, SimulatedCluster]:
    source = SimulatedCluster(Settings(cluster_id="source", port=9_000))
    target = SimulatedCluster(Settings(cluster_id="target", port=9_100, seed=1))
    world.add(source)
    world.add(target)
    return source, target


def _write(source: SimulatedCluster, values: list[bytes], partition: int) -> None:
    ask = Asker(source)
    ask(Metadata((TOPIC,)))
    ask.memory.time = source.now
    ask(Produce(TOPIC, partition, values=tuple(values)))
    assert ask(Fetch(TOPIC, partition)).responses[0].partitions[0].error_code == 0


def _committed(cluster: SimulatedCluster, topic: str) -> list[list[bytes | None]]:
    """The values that a committed reader sees, by partition."""
    found = []
    for log in (part.log for part in cluster.topic(topic).partitions):
        aborted = [(one.producer_id, one.first, one.last) for one in log.producers.aborted]
        kept = [
            batch
            for batch in log.batches
            if not batch.is_control
            and batch.next_offset <= log.stable_end
            and not any(batch.producer_id == who and first <= batch.base_offset < last for who, first, last in aborted)
        ]
        found.append([one.value for batch in kept for one in records(batch)])
    return found


def _until_copied(world: World, flow: Flow, name: str) -> None:
    """Run again, after a pause, while errors pass."""
    for number in range(10):
        try:
            run_flow(flow, RunRequest(flow.name, f"{name}-{number}")).raise_for_outcome()
        except FerryError as problem:
            if problem.retry is not RetryRule.RETRY:
                raise
            world.note(f"{name}-{number} ended: {problem}")
        else:
            return
        world.sleep(5.0)
    raise AssertionError(world.lines()[-1])


def test_the_same_seed_gives_the_same_world(tmp_path: Path) -> None:
    traces = []
    for _ in range(2):
        world = World(seed=7, mishaps=0.02)
        source, target = _clusters(world)
        source.create_topic(TOPIC, 2)
        flow = flow_between(source, target, tmp_path, f"a->b.topics = {TOPIC}")
        with entered(world):
            _write(source, [b"1", b"2"], 0)
            _until_copied(world, flow, "run")
        traces.append(world.lines())
    assert traces[0] == traces[1]
    assert len(traces[0]) > 50


@pytest.mark.parametrize("seed", range(5))
def test_every_record_is_there_once_whatever_happens(tmp_path: Path, seed: int) -> None:
    """Messages are lost or late, and the target's brokers fail one after the other."""
    world = World(seed=seed, mishaps=0.02)
    source = SimulatedCluster(Settings(cluster_id="source", port=9_000))
    target = SimulatedCluster(Settings(cluster_id="target", port=9_100, seed=1, brokers=(1, 2, 3), state_replicas=3))
    world.add(source)
    world.add(target)
    source.create_topic(TOPIC, 2)
    lines = (f"a->b.topics = {TOPIC}", "replication.factor = 3", "ferry.internal.topics.replication.factor = 3")
    flow = flow_between(source, target, tmp_path, *lines)
    world.after(0.2, lambda: _fail(world, target))
    written: list[list[bytes | None]] = [[], []]
    with entered(world):
        for number in range(4):
            for part in (0, 1):
                values = [b"%d-%d-%d" % (part, number, place) for place in range(world.chance.randrange(4) + 1)]
                _write(source, values, part)
                written[part] += values
            _until_copied(world, flow, f"run-{number}")
            world.sleep(world.chance.random())
        world.sleep(60.0)
    assert _committed(target, f"a.{TOPIC}") == written


def _fail(world: World, cluster: SimulatedCluster) -> None:
    """A broker fails, and comes back after some seconds; then the next one."""
    node, away = world.chance.choice(list(cluster.state.brokers)), 5.0 * world.chance.random()

    def back() -> None:
        world.note(f"broker {node} is back")
        cluster.start(node)
        world.after(1.0 + 5.0 * world.chance.random(), lambda: _fail(world, cluster))

    world.note(f"broker {node} fails")
    world.fail(cluster, node)
    world.after(away, back)


def test_a_run_copies_every_record(tmp_path: Path) -> None:
    world = World(seed=1)
    source, target = _clusters(world)
    source.create_topic(TOPIC, 2)
    flow = flow_between(source, target, tmp_path, f"a->b.topics = {TOPIC}")
    with entered(world):
        _write(source, [b"1", b"2"], 0)
        _write(source, [b"3"], 1)
        report = run_flow(flow, RunRequest(flow.name, "run-1"))
        assert _values(target, f"a.{TOPIC}") == [[b"1", b"2"], [b"3"]]
        assert sum(part.counters.records for part in report.partitions) == 3
        _write(source, [b"4"], 1)
        run_flow(flow, RunRequest(flow.name, "run-2"))
        assert _values(target, f"a.{TOPIC}") == [[b"1", b"2"], [b"3", b"4"]]
