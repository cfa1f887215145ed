"""A cluster that does not answer who asks whether a run still holds its flow: errors of Ferry's own name it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.feed_bench import task
from tests.opened import not_opened

from ferry.clusters.groups.coordination import Coordinator, Fenced, ProducerIdentity
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import ClientRole, load_config
from ferry.copying.driver import LOOK_SECONDS, CopyDriver
from ferry.copying.fencing import FencedWriter
from ferry.copying.lane_messages import Failure, LaneResult, LaneTask
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable, FenceLost, Superseded

pytestmark = pytest.mark.unit

CONFIG = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A.security.protocol = PLAINTEXT
B.security.protocol = PLAINTEXT
A->B.enabled = true
A->B.topics = t
"""


def unopened(directory: Path) -> Any:
    """A writer whose connection was never opened."""
    config = directory / "mm2.properties"
    config.write_text(CONFIG)
    flow = load_config(config).flow("A->B")
    writer: Any = FencedWriter(not_opened(flow), "ferry-A->B-run")
    writer.identity = ProducerIdentity(1, 0)
    writer._loop = EventLoop()
    writer._client = SimpleNamespace(run=writer._loop.run)
    writer._connection = ClusterConnection(writer._loop, flow.target, ClientRole.PRODUCER)
    writer._leaders = Leaders(writer._connection)
    writer._coordinator = Coordinator(writer._loop, writer._connection, "ferry-A->B-run", flow.position_group)
    return writer


@pytest.mark.parametrize("unanswered", [RequestLost, RequestNotSent])
def test_a_proof_that_nobody_answers_is_a_cluster_that_is_not_reached(
    unanswered: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very first request of a proof asks which protocol of transactions the cluster has."""

    async def refuse(*_: object) -> None:
        raise unanswered("cluster B: connection reset")

    monkeypatch.setattr(ClusterConnection, "send", refuse)
    writer = unopened(tmp_path)
    try:
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not prove that it is held: cluster B: connection reset"):
            writer.confirm()
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not write: cluster B: connection reset"):
            writer.write({("state", 0): [(b"k", b"v")]})
    finally:
        writer._connection.close()
        writer._loop.close()


@pytest.mark.parametrize(("own", "error"), [(True, FenceLost), (False, Superseded)])
def test_a_run_that_was_fenced_says_by_whom(own: bool, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fenced(*_: object, **__: object) -> None:
        raise Fenced("INVALID_PRODUCER_EPOCH")

    async def said(_: Coordinator) -> bool:
        return own

    async def newest_protocol(_: Coordinator) -> bool:
        return True

    monkeypatch.setattr(Coordinator, "prove", fenced)
    monkeypatch.setattr(Coordinator, "is_own", said)
    monkeypatch.setattr(Coordinator, "transactions_v2", newest_protocol)
    writer = unopened(tmp_path)
    try:
        with pytest.raises(error, match="took over" if not own else "nobody else has taken ferry-A->B-run"):
            writer.confirm()
    finally:
        writer._connection.close()
        writer._loop.close()


def test_who_asks_once_more_does_not_count_what_lanes_have_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lanes of this process use the same connection."""
    writer = unopened(tmp_path)
    told = []

    async def settle(_: Coordinator, identity: ProducerIdentity, **__: bool) -> ProducerIdentity:
        told.append((writer._connection.unreachable, writer._connection.without_coordinators, dict(writer._connection.coordinators)))
        return identity

    async def newest_protocol(_: Coordinator) -> bool:
        return True

    monkeypatch.setattr(Coordinator, "prove", settle)
    monkeypatch.setattr(Coordinator, "transactions_v2", newest_protocol)
    now = time.monotonic()
    for asked in (now - seconds for seconds in range(80, 0, -5)):
        writer._connection._outage.asked(asked)
        writer._connection._outage.failed(asked, asked)
        writer._connection.coordinator_outage.failed(asked, asked)
    writer._connection.coordinators[0, "group"] = 1
    try:
        writer.confirm()
        writer.confirm(LOOK_SECONDS)
    finally:
        writer._connection.close()
        writer._loop.close()
    assert told == [(True, True, {(0, "group"): 1}), (False, False, {})]


def test_a_run_that_ends_names_what_a_lane_waited_for_and_what_does_not_answer_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be two clusters. If both answer, the run goes on, and its next lanes do not count what the last ones have waited."""
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    made = CopyDriver(not_opened(load_config(config).flow("A->B")), RunRequest("A->B", "run"), InlineLaneRunner(), lambda _: None)
    waited = Failure("ClusterUnreachable", "cluster A: no broker has answered for 75 s", passing=True, unreachable=True)
    answers: list[ClusterUnreachable | None] = [ClusterUnreachable("cluster B: no answer in 10 s"), None]
    given: list[float] = []

    def confirm(seconds: float) -> None:
        given.append(seconds)
        problem = answers.pop(0)
        if problem is not None:
            raise problem

    lease: Any = SimpleNamespace(confirm=confirm)
    begun_anew: list[tuple[str, ClientRole]] = []

    @contextmanager
    def connected(cluster: OpenCluster, role: ClientRole) -> Iterator[Any]:
        yield SimpleNamespace(connection=SimpleNamespace(begin_anew=lambda: begun_anew.append((cluster.alias, role))))

    monkeypatch.setattr(OpenCluster, "require_contact", lambda _: None)
    monkeypatch.setattr(OpenCluster, "connected", connected)
    made._end_if_unreachable(lease)
    assert given == [], "no lane has waited"
    made._take_result(LaneResult(0, failure=waited), LaneTask(0, "id", ProducerIdentity(1, 0), ()))
    with pytest.raises(ClusterUnreachable, match="cluster A: no broker has answered for 75 s; asked once more: cluster B: no answer"):
        made._end_if_unreachable(lease)
    for _ in range(2):
        made._end_if_unreachable(lease)
    assert given == [LOOK_SECONDS] * 2
    assert begun_anew == [("A", ClientRole.CONSUMER)] * 2


def test_a_partition_that_drops_out_of_its_lane_is_named_once_with_the_true_reason(tmp_path: Path) -> None:
    """A right that is missing when the lane is planned again is told of the whole topic."""
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    made = CopyDriver(not_opened(load_config(config).flow("A->B")), RunRequest("A->B", "run"), InlineLaneRunner(), lambda _: None)
    lost = LaneTask(0, "id", ProducerIdentity(1, 0), (task(0), replace(task(1), topic="gone")))
    made._plans.fail("t", -1, "NotAuthorized", "grant DescribeConfigs on topic A.t")
    made._plans.name_missing([part.key for part in lost.partitions], [])
    assert {key: failure.error for key, failure in made._plans.failures.items()} == {
        ("t", -1): "NotAuthorized",
        ("gone", 1): "SourceMissing",
    }
