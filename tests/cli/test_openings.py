"""How often a command opens a cluster, and how often it reads a state topic: once, where it can hand on what it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.inside import ferry
from tests.conftest import Lab
from tests.recovery.rooms import commit

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.net.shared_connection import Connected, ConnectedCluster
from ferry.config import Cluster, load_config
from ferry.policy.naming import is_state_topic

pytestmark = pytest.mark.brokers


@dataclass
class Opened:
    """Openings by alias of the cluster, of its administration and of connections; readings by name of the state topic."""

    admins: Counter[str] = field(default_factory=Counter)
    connections: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    found, make, connect, read = Opened(), ClusterAdmin.__init__, Connected.__init__, InternalTopicReader.read

    def made(admin: ClusterAdmin, cluster: ConnectedCluster) -> None:
        found.admins[cluster.alias] += 1
        make(admin, cluster)

    def connected(client: Connected, loop: Any, cluster: Cluster, *how: Any) -> None:
        found.connections[cluster.alias] += 1
        connect(client, loop, cluster, *how)

    def begun(
        reader: InternalTopicReader, topic: str, start: Mapping[int, int] | None = None, *only: Any, **options: Any
    ) -> Iterator[InternalRecord]:
        found.states[topic] += is_state_topic(topic)
        return read(reader, topic, start, *only, **options)

    monkeypatch.setattr(ClusterAdmin, "__init__", made)
    monkeypatch.setattr(Connected, "__init__", connected)
    monkeypatch.setattr(InternalTopicReader, "read", begun)
    return found


@pytest.fixture
def config(lab: Lab) -> Path:
    """A flow in both directions, one of whose groups is behind its copies."""
    topic = lab.topic(lab.source, partitions=2)
    path = lab.config(
        "B->A.enabled = true",
        f"topics = {topic}",
        f"groups = {topic}",
        "emit.heartbeats.enabled = false",
        "sync.group.offsets.enabled = true",
    )
    lab.produce(lab.source, topic, [(number % 2, None, b"v") for number in range(20)])
    lab.run(load_config(path).flows[0])
    commit(lab.source, topic, topic, {0: 3, 1: 4})
    return path


def test_a_dry_failover(config: Path, opened: Opened) -> None:
    flow = load_config(config).flows[0]
    done = ferry("failover", config, "--flow", flow.name, "--dry-run")
    assert done.returncode == 0, done.stderr
    once = Counter({flow.source.alias: 1, flow.target.alias: 1})
    assert (opened.admins, opened.connections) == (once, once)
    assert opened.states == Counter({flow.state_topic: 1, flow.opposite().state_topic: 1})


def test_a_run_with_nothing_to_copy(config: Path, opened: Opened) -> None:
    """The state is read for the plan, for when its syncs were done, and before groups are written, each time as of then."""
    flow = load_config(config).flows[0]
    command = ("run", config, "--flow", flow.name, "--master", "inline")
    assert ferry(*command).returncode == 0  # its syncs are due
    for found in (opened.admins, opened.connections, opened.states):
        found.clear()
    done = ferry(*command)
    assert done.returncode == 0, done.stderr
    once = Counter({flow.source.alias: 1, flow.target.alias: 1})
    assert (opened.admins, opened.connections) == (once, once)
    assert opened.states == Counter({flow.state_topic: 3})


@pytest.mark.parametrize("command", ["plan", "status", "verify", "export-offsets"])
def test_what_only_reads(command: str, config: Path, opened: Opened) -> None:
    flow = load_config(config).flows[0]
    done = ferry(command, config, "--flow", flow.name)
    assert done.returncode == 0, done.stderr
    once = Counter({flow.source.alias: 1, flow.target.alias: 1})
    assert (opened.admins, opened.connections) == (once, once)
    assert opened.states == Counter({flow.state_topic: 1})


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_what_looks_at_several_flows(command: str, config: Path, opened: Opened) -> None:
    there, back = load_config(config).flows
    assert (back.source, back.target) == (there.target, there.source)
    done = ferry(command, config)
    assert "unexpected" not in done.stderr
    once = Counter({there.source.alias: 1, there.target.alias: 1})
    assert (opened.admins, opened.connections) == (once, once)
    assert opened.states == Counter({there.state_topic: 1}), "the other flow has none yet"
