"""A cluster that does not answer for a while is asked again for the plan of lost lanes; everything else goes through at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.opened import not_opened

from ferry.clusters.groups.coordination import COORDINATION_SECONDS, ProducerIdentity
from ferry.config import Flow
from ferry.copying import driver
from ferry.copying.driver import FIRST_PAUSE_SECONDS, CopyDriver
from ferry.copying.lane_attempts import LanesOut
from ferry.copying.lane_messages import LaneTask
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.partition_plan import PartitionPlan
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable, NotAuthorized

pytestmark = pytest.mark.unit


class Cluster:
    """Fails with what it is given, then answers; time passes only in pauses."""

    def __init__(self, problems: list[Exception]) -> None:
        self.problems, self.now, self.pauses, self.said = problems, 1.0, list[float](), list[str]()

    def retake(self, _: object) -> dict[int, ProducerIdentity]:
        """The pause before lost lanes are taken back is another one."""
        self.now, self.pauses = 1.0, []
        return {}

    def plan(self, *_: object, **_how: object) -> tuple[None, list[PartitionPlan]]:
        if self.problems:
            raise self.problems.pop(0)
        return None, []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def asked(flow_factory: Callable[..., Flow], monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster], object]:
    def ask(cluster: Cluster) -> object:
        flow = flow_factory()
        monkeypatch.setattr(driver, "clock", cluster)
        copy = CopyDriver(not_opened(flow), RunRequest(flow.name, "run"), InlineLaneRunner(), cluster.said.append)
        monkeypatch.setattr(copy._plans, "plan", cluster.plan)
        monkeypatch.setattr(copy, "_give_again", lambda *_: "answer")
        lease: Any = cluster
        lost = LanesOut({0: LaneTask(0, "id", ProducerIdentity(0, 0), ())}, {0: "its worker died"})
        return copy._taken_back(lease, {}, lost)

    return ask


def test_it_is_asked_until_it_answers(asked: Callable[[Cluster], object]) -> None:
    cluster = Cluster([ClusterUnreachable("cluster B: gone")] * 6)
    assert asked(cluster) == "answer"
    assert cluster.pauses == [FIRST_PAUSE_SECONDS] * 6
    assert len(cluster.said) == 1
    assert "the plan" in cluster.said[0]
    assert "cluster B: gone" in cluster.said[0]


def test_it_ends_with_what_the_cluster_said_last(asked: Callable[[Cluster], object]) -> None:
    cluster = Cluster([ClusterUnreachable("cluster B: gone") for _ in range(1_000)])
    with pytest.raises(ClusterUnreachable, match="cluster B: gone"):
        asked(cluster)
    assert COORDINATION_SECONDS <= cluster.now - 1.0 <= COORDINATION_SECONDS + FIRST_PAUSE_SECONDS


@pytest.mark.parametrize("problem", [NotAuthorized("no right"), ValueError("a defect")])
def test_other_problems_go_through_at_once(problem: Exception, asked: Callable[[Cluster], object]) -> None:
    cluster = Cluster([problem])
    with pytest.raises(type(problem)):
        asked(cluster)
    assert cluster.pauses == []
