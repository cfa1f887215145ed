"""A cluster that does not answer who asks whether a run still holds its flow: errors of Ferry's own name it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.feed_bench import task

from ferry.clusters.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.coordination import ProducerIdentity
from ferry.config import load_config
from ferry.copying import driver
from ferry.copying.driver import LOOK_SECONDS, CopyDriver
from ferry.copying.fencing import FencedWriter
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.model import Failure, LaneResult, LaneTask
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable

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


@pytest.mark.parametrize("unanswered", [RequestLost, RequestNotSent])
def test_a_proof_that_nobody_answers_is_a_cluster_that_is_not_reached(
    unanswered: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very first request of a proof asks which protocol of transactions the cluster has."""

    async def refuse(*_: object) -> None:
        raise unanswered("cluster B: connection reset")

    monkeypatch.setattr(ClusterConnection, "send", refuse)
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    writer = FencedWriter(load_config(config).flow("A->B"), "ferry-A->B-run")
    writer.identity = ProducerIdentity(1, 0)
    try:
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not prove that it is held: cluster B: connection reset"):
            writer.confirm()
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not write: cluster B: connection reset"):
            writer.write({("state", 0): [(b"k", b"v")]})
    finally:
        writer.__exit__()


def test_a_run_that_ends_names_what_a_lane_waited_for_and_what_does_not_answer_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be two clusters. If both answer, the run goes on."""
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    made = CopyDriver(load_config(config).flow("A->B"), RunRequest("A->B", "run"), InlineLaneRunner(), lambda _: None)
    waited = Failure("ClusterUnreachable", "cluster A: no broker has answered for 75 s", passing=True, unreachable=True)
    answers: list[ClusterUnreachable | None] = [ClusterUnreachable("cluster B: no answer in 10 s"), None]
    given: list[float] = []

    def confirm(seconds: float) -> None:
        given.append(seconds)
        problem = answers.pop(0)
        if problem is not None:
            raise problem

    lease: Any = SimpleNamespace(confirm=confirm)
    monkeypatch.setattr(driver, "require_contact", lambda *_: None)
    made._end_if_unreachable(lease)
    assert given == [], "no lane has waited"
    made._take_result(LaneResult(0, failure=waited))
    with pytest.raises(ClusterUnreachable, match="cluster A: no broker has answered for 75 s; asked once more: cluster B: no answer"):
        made._end_if_unreachable(lease)
    for _ in range(2):
        made._end_if_unreachable(lease)
    assert given == [LOOK_SECONDS] * 2


def test_a_partition_that_drops_out_of_its_lane_is_named_once_with_the_true_reason(tmp_path: Path) -> None:
    """A right that is missing when the lane is planned again is told of the whole topic."""
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    made = CopyDriver(load_config(config).flow("A->B"), RunRequest("A->B", "run"), InlineLaneRunner(), lambda _: None)
    lost = LaneTask(0, "id", ProducerIdentity(1, 0), (task(0), replace(task(1), topic="gone")))
    made._fail("t", -1, "NotAuthorized", "grant DescribeConfigs on topic A.t")
    made._name_missing([lost], [])
    assert {key: failure.error for key, failure in made._failures.items()} == {
        ("t", -1): "NotAuthorized",
        ("gone", 1): "SourceMissing",
    }
