"""A cluster that does not answer for a while is asked again; everything else goes through at once."""

from __future__ import annotations

import pytest

from ferry.clusters.coordination import COORDINATION_SECONDS
from ferry.copying.lanes_out import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, until_clusters_answer
from ferry.errors import ClusterUnreachable, NotAuthorized

pytestmark = pytest.mark.unit


class Cluster:
    """Fails with what it is given, then answers; time passes only in pauses."""

    def __init__(self, problems: list[Exception]) -> None:
        self.problems, self.now, self.pauses = problems, 0.0, list[float]()

    def __call__(self) -> str:
        if self.problems:
            raise self.problems.pop(0)
        return "answer"

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def asked(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("time.monotonic", lambda: cluster.now)
    answer: str = until_clusters_answer().copy(sleep=cluster.sleep)(cluster)
    return answer


def test_pauses_grow_up_to_the_longest(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster([ClusterUnreachable("cluster B: gone")] * 6)
    assert asked(cluster, monkeypatch) == "answer"
    assert cluster.pauses == [FIRST_PAUSE_SECONDS, 1.0, 2.0, 4.0, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 6
    assert all("the plan" in record.getMessage() and "cluster B: gone" in record.getMessage() for record in caplog.records)


def test_it_ends_with_what_the_cluster_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([ClusterUnreachable("cluster B: gone") for _ in range(1_000)])
    with pytest.raises(ClusterUnreachable, match="cluster B: gone"):
        asked(cluster, monkeypatch)
    assert COORDINATION_SECONDS <= cluster.now < COORDINATION_SECONDS + LONGEST_PAUSE_SECONDS


@pytest.mark.parametrize("problem", [NotAuthorized("no right"), ValueError("a defect")])
def test_other_problems_go_through_at_once(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([problem])
    with pytest.raises(type(problem)):
        asked(cluster, monkeypatch)
    assert cluster.pauses == []
