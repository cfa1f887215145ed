"""The users of an open cluster share its connections. These are closed at its end, or by their last user after one has lost the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.clusters.net import shared_connection
from ferry.clusters.net.connections import RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.shared_connection import Connected
from ferry.clusters.open_cluster import OpenCluster, OpenClusters
from ferry.config import ClientRole, Cluster, load_config
from ferry.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, NotAuthorized, TooFewBrokers

pytestmark = pytest.mark.unit

CONFIG = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
B->A.enabled = true
B.producer.linger.ms = 7
"""


class Connection:
    """A connection that opens at once."""

    def __init__(self, loop: EventLoop, cluster: Cluster, _: ClientRole) -> None:
        self.loop, self.alias, self.closed, self.last_answer = loop, cluster.alias, False, float("inf")

    async def open(self, *_: object) -> None:
        """It is open."""

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Cluster]:
    monkeypatch.setattr(shared_connection, "ClusterConnection", Connection)
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    flow = load_config(path).flow("A->B")
    return flow.source, flow.target


@pytest.fixture
def clusters() -> Iterator[OpenClusters]:
    with OpenClusters() as opened:
        yield opened


@pytest.fixture
def cluster(sides: tuple[Cluster, Cluster], clusters: OpenClusters) -> OpenCluster:
    return clusters.of(sides[0])


def used(cluster: OpenCluster, role: ClientRole = ClientRole.ADMIN) -> Connected:
    with cluster.connected(role) as client:
        assert not is_closed(client)
    return client


def is_closed(client: Connected) -> bool:
    connection: Any = client.connection
    return bool(connection.closed)


def test_a_connection_is_lent_again_and_closed_at_the_end(sides: tuple[Cluster, Cluster]) -> None:
    with OpenClusters() as clusters:
        first = used(clusters.of(sides[0]))
        assert used(clusters.of(sides[0])) is first
        assert not is_closed(first)
        assert used(clusters.of(sides[1])) is not first
    assert is_closed(first)


def test_a_client_that_cannot_close_keeps_nothing_else_open(sides: tuple[Cluster, Cluster]) -> None:
    class Stuck:
        def close(self) -> None:
            raise RuntimeError

    with OpenClusters() as clusters:
        source, target = map(clusters.of, sides)
        source.__dict__["admin"] = Stuck()
        clients = used(source), used(target)
    assert all(map(is_closed, clients))


def test_equal_configs_have_one_open_cluster(sides: tuple[Cluster, Cluster], clusters: OpenClusters) -> None:
    again = load_config(sides[0].path).flow("B->A").target
    assert again is not sides[0]
    assert clusters.of(again) is clusters.of(sides[0])
    assert clusters.of(sides[1]) is not clusters.of(sides[0])


def test_roles_with_the_same_settings_share_a_connection(sides: tuple[Cluster, Cluster], clusters: OpenClusters) -> None:
    source, target = map(clusters.of, sides)
    assert used(source, ClientRole.PRODUCER) is used(source)
    assert used(target, ClientRole.PRODUCER) is not used(target)
    assert used(target, ClientRole.CONSUMER) is used(target)


def test_all_clusters_have_one_event_loop(sides: tuple[Cluster, Cluster], clusters: OpenClusters) -> None:
    source, target = (used(clusters.of(side)) for side in sides)
    assert source.loop is target.loop
    with OpenClusters() as others:
        assert used(others.of(sides[0])).loop is not source.loop


def test_two_users_at_a_time_share_a_connection(cluster: OpenCluster) -> None:
    with cluster.connected() as first, cluster.connected() as second:
        assert first is second


@pytest.mark.parametrize(
    "problem",
    [
        ClusterUnreachable("away"),
        AuthenticationFailed("no login"),
        RequestNotSent("x"),
        RequestLost("x"),
        KeyboardInterrupt(),
        SystemExit(),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_a_connection_that_may_be_of_no_use_any_more_is_closed(problem: BaseException, cluster: OpenCluster) -> None:
    with pytest.raises(type(problem)), cluster.connected() as failed:
        raise problem
    assert is_closed(failed)
    assert used(cluster) is not failed


@pytest.mark.parametrize("problem", [NotAuthorized("grant"), TooFewBrokers("two"), ConfigError("a key"), OSError("a file")])
def test_another_failure_of_its_user_does_not_close_a_connection(problem: Exception, cluster: OpenCluster) -> None:
    with pytest.raises(type(problem)), cluster.connected() as client:
        raise problem
    assert used(cluster) is client


def test_a_connection_that_failed_stays_open_for_its_other_users(cluster: OpenCluster) -> None:
    with cluster.connected() as first:
        with pytest.raises(ClusterUnreachable), cluster.connected() as failed:
            raise ClusterUnreachable("away")
        assert failed is first
        assert not is_closed(first)
        assert used(cluster) is not first
    assert is_closed(first)


def test_what_a_signal_interrupts_does_not_go_on_when_others_ask(
    sides: tuple[Cluster, Cluster], clusters: OpenClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could write what its caller has given up. So no other connection runs that event loop again, but for who uses it already."""
    source, target = map(clusters.of, sides)
    done: list[str] = []

    async def write(connection: Connection) -> None:
        await connection.loop.sleep(0.01)
        done.append(connection.alias)

    before = used(target)
    with target.connected() as held:
        client = used(source)
        with monkeypatch.context() as patch:
            patch.setattr(held.loop.selector, "poll", interrupted)
            with pytest.raises(KeyboardInterrupt):
                source.ask(write)
        assert is_closed(client)
        source.ask(write)
        target.ask(write)
        assert done == ["A", "B"]
        assert not is_closed(held)
    assert before is held
    assert is_closed(held)


def interrupted(**_: object) -> None:
    raise KeyboardInterrupt


def test_code_that_an_event_loop_runs_may_open_clusters_itself(sides: tuple[Cluster, Cluster], cluster: OpenCluster) -> None:
    """A message handler or a listener may ask a cluster: the loop that it runs in cannot run a second time."""

    async def alias(connection: Connection) -> str:
        return connection.alias

    async def handler(_: Connection) -> tuple[str, Connected]:
        with OpenClusters() as clusters:
            opened = clusters.of(sides[0])
            return opened.ask(alias), used(opened)

    told, inside = cluster.ask(handler)
    assert told == "A"
    assert inside is not used(cluster)
    assert is_closed(inside)


def test_the_settings_of_roles_are_compared_once(cluster: OpenCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first, asked = used(cluster, ClientRole.CONSUMER), list[ClientRole]()
    monkeypatch.setattr(Cluster, "of_role", lambda _, role: asked.append(role))
    assert used(cluster, ClientRole.CONSUMER) is first
    assert asked == []
