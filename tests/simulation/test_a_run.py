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


def test_a_run_copies_every_record(tmp_path: Path) -> None:
    world = World(seed=1)
    source, target = _clusters(world)
    source.create_topic(TOPIC, 2)
    flow = flow_between(source, target, tmp_path, f"a->b.topics = {TOPIC}")
    with entered(world):
        _write(source, [b"1", b"2"], 0)
        _write(source, [b"3"], 1)
        report = run_flow(flow, "run-1")
        assert _values(target, f"a.{TOPIC}") == [[b"1", b"2"], [b"3"]]
        assert sum(part.counters.records for part in report.partitions) == 3
        _write(source, [b"4"], 1)
        run_flow(flow, "run-2")
        assert _values(target, f"a.{TOPIC}") == [[b"1", b"2"], [b"3", b"4"]]
