"""Ferry's own run in a world: its driver, lanes, fences and reports, from one simulated cluster to another, in one thread and on its time.

Modules of Ferry and of kafka-python get the world's time and its random numbers; confluent-kafka's client for changes is simulated too. The
threads that only tell of progress do not run. The same seed gives the same trace, if Python orders sets alike (PYTHONHASHSEED).
"""

from __future__ import annotations

import random
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from tests.simulation.admin_client import WorldAdminClient
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.wires import connect_to
from tests.simulation.world import World, WorldSecrets, WorldTime

from ferry.clusters.admin import cluster_admin
from ferry.config import Flow, load_config
from ferry.copying import driver, following_driver, plain_coordinator, segment_end  # noqa: F401 - so that they get the world's time
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import RunReport
from ferry.pipeline.run import copied

INSIDE = ("ferry.", "kafka.")


@contextmanager
def entered(world: World) -> Iterator[None]:
    """Inside, this process is in the world."""
    with pytest.MonkeyPatch.context() as patch:
        connect_to(world, patch)
        patch.setattr(cluster_admin, "AdminClient", partial(WorldAdminClient, world))
        for module in (driver, following_driver):
            patch.setattr(module, "beside", _nothing_beside)
        patch.setattr(driver, "named_when_slow", _nothing_beside)
        stand_ins = {"time": (time, WorldTime(world)), "random": (random, world.random), "secrets": (secrets, WorldSecrets(world))}
        for name, module in list(sys.modules.items()):
            for used, (real, stand_in) in stand_ins.items():
                if name.startswith(INSIDE) and isinstance(module, ModuleType) and vars(module).get(used) is real:
                    patch.setattr(module, used, stand_in)
        yield


def _nothing_beside(*_: object) -> AbstractContextManager[None]:
    return nullcontext()


def flow_between(source: SimulatedCluster, target: SimulatedCluster, directory: Path, *lines: str) -> Flow:
    """A flow between two clusters of a world."""

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
    return load_config(path).flows[0]


def run_flow(flow: Flow, run_id: str) -> RunReport:
    """A whole run without syncs."""
    with open_flow(flow) as opened:
        return copied(opened, RunRequest(flow.name, run_id), lambda run: run.copy(InlineLaneRunner(), lambda _: None))
