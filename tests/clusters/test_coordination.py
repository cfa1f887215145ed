"""The coordinators' side of a lane against scripted answers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters import coordination as module
from ferry.clusters.coordination import Coordinator, Position, PositionsRefused, ProducerIdentity
from ferry.clusters.leaders import GONE_SECONDS

pytestmark = pytest.mark.unit

UNKNOWN, UNKNOWN_ID, REFUSED = 3, 100, 29


class Cluster:
    """A group coordinator that answers every TxnOffsetCommit with the next of some codes (the last one for good), and a clock."""

    alias = "B"

    def __init__(self, *codes: int) -> None:
        self.now, self.asked, self._codes = 50.0, 0, list(codes)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def send(self, _: Any, node: int | None = None) -> Any:
        if node is None:
            return SimpleNamespace(coordinators=[SimpleNamespace(error_code=0, node_id=1)])
        self.asked += 1
        code = self._codes.pop(0) if len(self._codes) > 1 else self._codes[0]
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=4, error_code=code)])])


def commit(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", cluster)
    coordinator = Coordinator(cluster, cluster, "id", "group")
    asyncio.run(coordinator.commit_positions(ProducerIdentity(1, 0), {("t", 4): Position(7, -1, "mark")}, transactions_v2=True))


@pytest.mark.parametrize("code", [UNKNOWN, UNKNOWN_ID])
def test_a_coordinator_that_has_not_heard_of_a_topic_yet_is_asked_again(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(code, code, 0)
    commit(cluster, monkeypatch)
    assert cluster.asked == 3


def test_a_remote_topic_that_stays_unknown_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(UNKNOWN)
    with pytest.raises(PositionsRefused) as refused:
        commit(cluster, monkeypatch)
    assert (refused.value.partitions, refused.value.right, cluster.now > 50 + GONE_SECONDS) == ((("t", 4),), "", True)


def test_a_right_that_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(REFUSED)
    with pytest.raises(PositionsRefused, match="Read is missing"):
        commit(cluster, monkeypatch)
    assert cluster.asked == 1
