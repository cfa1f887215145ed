"""How many round trips a commit takes: requests that wait for the answers of others, of a lane that follows."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

import pytest
from kafka.future import Future
from tests.simulation.playing import play
from tests.simulation.releases import Release
from tests.simulation.scenario import OLD, Kind, Round, Scenario
from tests.simulation.writing import Write

from ferry.clusters.net.connections import ClusterConnection

pytestmark = pytest.mark.unit
COMMITTING = {"AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest", "ProduceRequest", "TxnOffsetCommitRequest", "EndTxnRequest"}


class Flights:
    """Of each commit, the largest number of requests each of which waited for the answer of the one before."""

    def __init__(self, submit: Any) -> None:
        self.commits: list[int] = []
        self._submit, self._answered = submit, 0

    def submit(self, connection: Any, request: Any, *where: Any) -> Future:
        future: Future = self._submit(connection, request, *where)
        if request.name not in COMMITTING or not self._is_of_a_lane(request):
            return future
        flight = self._answered + 1

        def answered(_: object) -> None:
            self._answered = max(self._answered, flight)
            if request.name == "EndTxnRequest":
                if request.committed:
                    self.commits.append(self._answered)
                self._answered = 0

        return future.add_callback(answered)

    @staticmethod
    def _is_of_a_lane(request: Any) -> bool:
        name = getattr(request, "transactional_id", None) or getattr(request, "v3_and_below_transactional_id", "")
        return not str(name).endswith("-run")


def _counted(connection: ClusterConnection, found: Flights, *what: Any) -> Future:
    return found.submit(connection, *what)


def flights(monkeypatch: pytest.MonkeyPatch, transaction_version: int, release: Release, brokers: int, *, both: bool = False) -> list[int]:
    """Of the commits of one lane that follows, while records arrive in two partitions one after the other."""
    found = Flights(ClusterConnection.submit)
    monkeypatch.setattr(ClusterConnection, "submit", partialmethod(_counted, found))
    later = tuple(Write(number % 2, 2) for number in range(12))
    one = Round(0, Kind.FOLLOWS, (Write(0, 1), Write(1, 1)), later, pause=0.3, seconds=5.0, lanes=1)
    settings = {"transaction_version": transaction_version, "release": release, "target_brokers": brokers, "both": both}
    outcome = play(Scenario(11, (one,), (), goes_on=False, **settings))  # type: ignore[arg-type]
    assert outcome.problems == []
    return found.commits


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_commit_takes_two_round_trips(monkeypatch: pytest.MonkeyPatch, brokers: int) -> None:
    """The first one of each partition takes three: it tells where its log ends."""
    commits = flights(monkeypatch, 2, (4, 3), brokers)
    assert commits[3:13] == [2] * 10
    assert max(commits) == 3


@pytest.mark.parametrize("release", [OLD, (4, 3)])
def test_without_kip_890_one_more_adds_partitions_to_the_transaction(monkeypatch: pytest.MonkeyPatch, release: Release) -> None:
    commits = flights(monkeypatch, 1, release, 1)
    assert commits[3:13] == [3] * 10
    assert max(commits) == 4
