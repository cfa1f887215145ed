"""What a try of a run that follows makes of the runs that began later: whether it ends, waits or goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from tests.copying.driver_bench import Clock

from ferry.clusters.net.shared_connection import Asked
from ferry.copying import attempt_records
from ferry.copying.attempt_records import SILENT_SECONDS, TryRecords, is_free, waited_for
from ferry.copying.request import RunRequest
from ferry.copying.run_liveness import FOLLOW_LOOK_SECONDS
from ferry.errors import ClusterUnreachable
from ferry.ledger.recovery_record import Stage
from ferry.ledger.runs_topic import RunOpened, RunRecords, RunResult

pytestmark = pytest.mark.unit

UNTIL = 5_000.0
FOLLOWS = datetime.fromtimestamp(UNTIL, UTC)
RESULT = RunResult("", "", 0.0, 0.0)
FLOW: Any = SimpleNamespace(name="A->B", source=None, target=None, ledger_topic="ledger")


class Topic:
    """The runs topic; `written`: by the try."""

    def __init__(self, patch: Callable[..., None]) -> None:
        self.clock, self.runs, self.written = Clock(), dict[str, RunRecords](), list[Any]()
        self.stage, self.then = Stage.REPLICATING, list[Callable[[], None]]()
        self.proven = True
        patch(attempt_records, "RunProof", lambda _: SimpleNamespace(comes=lambda: self.proven))
        patch(attempt_records, "clock", self.clock)
        patch(attempt_records, "read_run_records", lambda _, run_id: self.runs.get(run_id, RunRecords()))
        patch(attempt_records, "read_recent_runs", self._read)
        patch(attempt_records, "write_run_record", lambda _, record, **__: self.written.append(record))
        patch(attempt_records, "ask_syncs_done", lambda _: Asked(dict))
        self.ledger_ends = dict[int, int]()
        reader = SimpleNamespace(ask_end_offsets=lambda _: Asked(lambda: dict(self.ledger_ends)))
        self.opened: Any = SimpleNamespace(flow=FLOW, target=SimpleNamespace(reader=lambda: reader), anew=self._forget)
        self.kept: Stage | None = None  # what the open flow has read
        patch(attempt_records, "read_recovery", lambda *_, **__: self.kept or self.stage)
        patch(attempt_records, "current_record", lambda _, stage: SimpleNamespace(stage=stage.value))

    def _forget(self) -> None:
        self.kept = None

    def _read(self, _: object) -> dict[str, RunRecords]:
        if self.then:
            self.then.pop(0)()
        return dict(self.runs)

    def begins(self, run_id: str, *, follows: bool = False, topics: tuple[str, ...] = ()) -> None:
        self.runs[run_id] = RunRecords(RunOpened(run_id, "", "", {}, FOLLOWS.isoformat() if follows else None, topics))

    def ends(self, run_id: str) -> None:
        self.runs[run_id] = replace(self.runs[run_id], result=RESULT)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(monkeypatch.setattr)


def a_try(topic: Topic) -> TryRecords:
    return TryRecords(topic.opened, RunRequest("A->B", "run", follow_until=FOLLOWS), 0.0)


@pytest.mark.parametrize("proven", [True, False])
def test_another_try_ends_only_if_the_newer_run_goes_on(topic: Topic, proven: bool) -> None:
    """The newer one may have been killed too, or have failed before it took the flow over."""
    topic.proven = proven
    topic.begins("run", follows=True)
    topic.begins("newer", follows=True)
    found = a_try(topic).begin()
    assert (None if found is None else found.run_id) == ("newer" if proven else None)
    assert [record.run_id for record in topic.written] == ([] if proven else ["run"])


@pytest.mark.parametrize(
    ("taker", "comes_back"),
    [({}, True), ({"follows": True, "topics": ("t",)}, True), ({"follows": True}, False)],
    ids=["does not follow", "follows one topic", "follows"],
)
def test_a_run_gives_way_to_one_that_does_not_follow_all_topics(topic: Topic, taker: dict[str, Any], comes_back: bool) -> None:
    made = a_try(topic)
    made.begin()
    topic.begins("run", follows=True)
    topic.begins("other", **taker)
    found = made.taker()
    assert found is not None
    made.give_way(found)
    assert (found.run_id, made.gave_way_to) == ("other", "other" if comes_back else "")


def test_who_takes_the_flow_without_being_a_run_ends_it_although_it_gave_way_before(topic: Topic) -> None:
    topic.begins("run", follows=True)
    topic.begins("other")
    topic.ends("other")
    again = a_try(topic)
    again.begin()
    assert again.taker() is None
    again.give_way(None)
    assert again.gave_way_to == ""


def test_whether_the_flow_is_free(topic: Topic) -> None:
    topic.begins("run", follows=True)
    topic.begins("other")
    assert is_free(topic.runs, "other", 0.0) is None
    topic.ends("other")
    assert is_free(topic.runs, "other", 0.0) is True
    topic.begins("one more")
    assert is_free(topic.runs, "other", 0.0) is None
    topic.begins("newer", follows=True)
    assert is_free(topic.runs, "other", 0.0) is False
    assert is_free(topic.runs, "other", UNTIL + 1) is None, "its time is over"
    topic.ends("newer")
    topic.ends("one more")
    assert is_free(topic.runs, "other", 0.0) is True


def test_a_failover_while_a_run_waits_ends_it(topic: Topic) -> None:
    """The run has read the state before it gave way."""
    topic.kept, topic.stage = Stage.REPLICATING, Stage.FAILED_OVER
    topic.begins("run", follows=True)
    topic.begins("other")
    topic.ends("other")
    assert not waited_for(topic.opened, RunRequest("A->B", "run", follow_until=FOLLOWS), "other", lambda _: None)


@pytest.mark.parametrize("stage", [Stage.REPLICATING, Stage.FAILED_OVER])
def test_a_run_that_gave_way_waits_for_the_result_of_the_other(topic: Topic, stage: Stage) -> None:
    said: list[str] = []

    def fails() -> None:
        raise ClusterUnreachable("cluster B does not answer")

    topic.stage = stage
    topic.begins("run", follows=True)
    topic.begins("other")
    topic.then = [lambda: None, fails, fails, lambda: topic.ends("other")]
    request = RunRequest("A->B", "run", follow_until=FOLLOWS)
    assert waited_for(topic.opened, request, "other", said.append) == (stage is Stage.REPLICATING)
    assert (len(topic.clock.slept), len(said)) == (4, 2), "what is wrong is said once"


def test_a_run_that_writes_nothing_any_more_was_killed(topic: Topic) -> None:
    topic.begins("run", follows=True)
    topic.begins("other")
    commits = 30
    topic.then = [lambda: topic.ledger_ends.update({0: len(topic.clock.slept)})] * commits
    said: list[str] = []
    assert waited_for(topic.opened, RunRequest("A->B", "run", follow_until=FOLLOWS), "other", said.append)
    assert sum(topic.clock.slept[commits:]) == pytest.approx(SILENT_SECONDS, abs=2 * FOLLOW_LOOK_SECONDS)
    assert "takes the flow back" in said[-1]


@pytest.mark.parametrize("proven", [True, False])
def test_a_run_that_gave_way_ends_only_for_one_that_took_the_flow(topic: Topic, proven: bool) -> None:
    """A run that should follow may have been killed before it took the flow."""
    topic.proven = proven
    topic.begins("run", follows=True)
    topic.begins("other")
    topic.begins("newer", follows=True)
    topic.then = [lambda: None, lambda: topic.ends("other")]
    assert waited_for(topic.opened, RunRequest("A->B", "run", follow_until=FOLLOWS), "other", lambda _: None) == (not proven)
    assert len(topic.clock.slept) == (1 if proven else 2)


def test_a_run_that_gave_way_waits_as_long_as_it_follows(topic: Topic) -> None:
    topic.begins("run", follows=True)
    topic.begins("other")
    topic.then = [lambda: topic.ledger_ends.update({0: len(topic.clock.slept)})] * 10_000
    assert not waited_for(topic.opened, RunRequest("A->B", "run", follow_until=FOLLOWS), "other", lambda _: None)
    assert topic.clock.now >= UNTIL
