"""Ferry's own run in a world: its driver, lanes, fences and reports, from one simulated cluster to another, in one thread and on its time.

confluent-kafka's client for changes is simulated too. Threads that only tell of progress do not run. The same seed gives the same trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.simulation.admin_client import WorldAdminClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.framed import FramedConnections
from tests.simulation.virtual_time import classes_changed, put_in_place
from tests.simulation.wires import WorldConnections, connect_to
from tests.simulation.world import World

from ferry.clusters.admin import cluster_admin
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.copying.signals import StopSignals
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import RunReport
from ferry.pipeline.run import copied

# The level of kafka-python's logs.
SILENT = logging.CRITICAL + 1


class _ToTrace(logging.Handler):
    """Puts Ferry's warnings into the trace."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        who, text = self._world.current.name if self._world.current else "test", record.getMessage()
        self._world.note(f"{who} warns: {text}")
        self._world.warnings.append(text)


@contextmanager
def entered(world: World, *, framed: bool = False) -> Iterator[None]:
    """Inside, this process is in the world. At its end, whatever still runs there is killed. `framed`: connections carry bytes."""
    handler, log = _ToTrace(world), logging.getLogger("ferry")
    with classes_changed(), pytest.MonkeyPatch.context() as patch:
        connect_to(patch, FramedConnections if framed else WorldConnections)
        put_in_place(world, patch)
        patch.setattr(cluster_admin, "AdminClient", partial(WorldAdminClient, world))
        # Runs that are beside each other here are processes of their own; none gets signals.
        patch.setattr(StopSignals, "__enter__", lambda signals: signals)
        patch.setattr(log, "propagate", False)
        log.addHandler(handler)
        kafka, level = logging.getLogger("kafka"), logging.getLogger("kafka").level
        if level != SILENT:  # a change is slow
            kafka.setLevel(SILENT)
        try:
            yield
        finally:
            world.end()
            log.removeHandler(handler)
            if level != SILENT:
                kafka.setLevel(level)


def flow_between(source: SimulatedCluster, target: SimulatedCluster, directory: Path, *lines: str) -> Flow:
    """A flow between two clusters of a world."""
    return flows_between(source, target, directory, *lines)[0]


def flows_between(source: SimulatedCluster, target: SimulatedCluster, directory: Path, *lines: str) -> tuple[Flow, ...]:
    """The flows of a file: from the first cluster to the second one, and what `lines` add."""

    def servers(cluster: SimulatedCluster) -> str:
        return ",".join(f"{broker.host}:{broker.port}" for broker in cluster.state.brokers.values())

    text = [
        "clusters = a, b",
        f"a.bootstrap.servers = {servers(source)}",
        f"b.bootstrap.servers = {servers(target)}",
        "a->b.enabled = true",
        "b->a.emit.heartbeats.enabled = false",
        "a->b.heartbeats.replication.enabled = false",
        "replication.factor = 1",
        "ferry.internal.topics.replication.factor = 1",
        *lines,
    ]
    path = directory / "mm2.properties"
    path.write_text("\n".join(text) + "\n", encoding="latin-1")
    return load_config(path).flows


def run_flow(flow: Flow, request: RunRequest, say: Callable[[str], None] = lambda _: None) -> RunReport:
    """A whole run without syncs. `say`: gets what the run tells a person."""
    with open_flow(flow) as opened:
        return copied(opened, request, lambda run: run.copy(InlineLaneRunner(), say))
