"""What was read last stays, is read again in the background, and no flow's trouble is another's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import NEVER_SECONDS, until

from ferry.page import snapshots as module
from ferry.page.problem import Problem
from ferry.page.snapshots import ReadKey, Snapshot, Snapshots

pytestmark = pytest.mark.unit

DEAD = Problem("ClusterUnreachable", "gone", "wait")


class Source:
    """Reads that wait until they may go on."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.answers: list[tuple[Any, Problem | None, int]] = []
        self.calls = 0
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self) -> tuple[Any, Problem | None, int]:
        with self._lock:
            self.calls += 1
            self.running += 1
            self.most = max(self.most, self.running)
        self.gate.wait(NEVER_SECONDS)
        with self._lock:
            self.running -= 1
            return self.answers.pop(0) if self.answers else (self.calls, None, 10)


@pytest.fixture
def source() -> Iterator[Source]:
    found = Source()
    yield found
    found.gate.set()


def settled(cache: Snapshots, key: ReadKey, source: Source, fresh: float = 60.0) -> Snapshot[Any]:
    snapshot, future = cache.get(key, source, fresh)
    return snapshot if future is None else future.result(NEVER_SECONDS)


def test_a_fresh_snapshot_is_served_and_a_stale_one_is_read_again_behind(source: Source) -> None:
    cache, key = Snapshots(2), ReadKey("A->B", "overview")
    assert cache.get(key, source, 60.0)[0].data is None
    assert settled(cache, key, source).data == 1
    snapshot, future = cache.get(key, source, 60.0)
    assert (snapshot.data, snapshot.refreshing, future, source.calls) == (1, False, None, 1)
    source.gate.clear()
    other = ReadKey("A->B", "runs")
    source.gate.set()
    assert settled(cache, other, source, fresh=0.0).data == 2
    time.sleep(0.05)  # a read is not repeated until it rested four times as long as it took
    source.gate.clear()
    snapshot, future = cache.get(other, source, 0.0)
    assert (snapshot.data, snapshot.refreshing) == (2, True)
    again, same = cache.get(other, source, 0.0)
    assert (again.data, same) == (2, future)
    source.gate.set()
    assert future is not None
    assert future.result(NEVER_SECONDS).data == 3
    assert source.calls == 3


def test_what_is_fresh_or_has_just_failed_is_read_again_when_somebody_asks_for_it(source: Source) -> None:
    cache, key = Snapshots(2), ReadKey("A->B", "overview")
    source.answers = [("good", None, 4), (None, DEAD, 0), ("better", None, 4)]
    assert settled(cache, key, source).data == "good"
    for data, problem in (("good", DEAD), ("better", None)):
        assert cache.get(key, source, 60.0)[1] is None
        future = cache.get(key, source, 60.0, again=True)[1]
        assert future is not None
        seen = future.result(NEVER_SECONDS)
        assert (seen.data, seen.problem) == (data, problem)


def test_the_last_good_data_stays_and_a_dead_cluster_is_asked_less_and_less(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    cache, key = Snapshots(2), ReadKey("A->B", "overview")
    source.answers = [("good", None, 4), *[(None, DEAD, 0)] * 7, ("better", None, 4)]
    first = settled(cache, key, source, fresh=15.0)
    asked = []
    while source.answers:
        now[0] += 1.0
        snapshot, future = cache.get(key, source, 15.0)
        if future is None:
            continue
        asked.append(now[0])
        found = future.result(NEVER_SECONDS)
        if found.problem is not None:
            assert (found.data, found.read_at, found.problem) == ("good", first.read_at, DEAD)
            assert snapshot.age(now[0]) == now[0] - 1000.0
    assert [later - earlier for earlier, later in pairwise([1000.0, *asked])] == [15.0, 5.0, 10.0, 20.0, 40.0, 80.0, 120.0, 120.0]
    assert (found.data, found.problem, found.read_at) == ("better", None, now[0])


def test_after_an_outage_every_view_of_the_flow_is_read_again_at_once(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    cache = Snapshots(2)
    first, *others = keys = [ReadKey("A->B", "overview"), ReadKey("A->B", "runs"), ReadKey("A->B", "coverage", "orders")]
    for key in keys:
        source.answers = [("good", None, 4)]
        settled(cache, key, source, fresh=1.0)
    for pause in (5.0, 5.0, 10.0, 20.0):
        now[0] += pause
        for key in keys:
            source.answers = [(None, DEAD, 0)]
            assert settled(cache, key, source, fresh=1.0).problem == DEAD
    now[0] += 40.0
    stranger, strange = ReadKey("B->C", "overview"), Source()
    strange.answers = [(None, DEAD, 0)]
    assert settled(cache, stranger, strange).problem == DEAD
    before, source.answers = source.calls, []
    assert settled(cache, first, source).problem is None
    until(lambda: all(cache.get(key, source, 60.0)[0].problem is None for key in others))
    assert source.calls == before + 3
    assert strange.calls == 1, "another flow was read too"


def test_one_answer_of_the_other_cluster_makes_no_read_more_frequent(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    cache, other = Snapshots(2), Source()
    dead, alive = ReadKey("A->B", "overview"), ReadKey("A->B", "runs")
    source.answers = [(None, DEAD, 0)] * 9
    assert settled(cache, alive, other, fresh=1.0).problem is None
    for _ in range(40):
        now[0] += 1.0
        settled(cache, dead, source)
        settled(cache, alive, other, fresh=1.0)
    assert (source.calls, other.calls) == (4, 41)


def test_a_read_that_raises_is_a_problem_and_costs_no_thread() -> None:
    cache = Snapshots(1)

    def broken() -> tuple[Any, Problem | None, int]:
        raise RuntimeError("a secret")

    for name in ("a", "b"):
        future = cache.get(ReadKey("A->B", name), broken, 60.0)[1]
        assert future is not None
        problem = future.result(NEVER_SECONDS).problem
        assert problem is not None
        assert (problem.error, "secret" in problem.message) == ("ReadFailed", False)


def test_flows_in_trouble_leave_readers_to_the_others(source: Source) -> None:
    cache = Snapshots(4)
    good = Source()
    for number in range(6):
        source.answers.append((None, DEAD, 0))
        settled(cache, ReadKey(f"dead-{number}", "overview"), source)
    source.gate.clear()
    for number in range(6):
        for name in ("runs", "groups", "drift"):
            cache.get(ReadKey(f"dead-{number}", name), source, 60.0)
    until(lambda: source.running == 2)
    for number in range(20):
        assert settled(cache, ReadKey(f"alive-{number}", "overview"), good).data is not None
    assert source.most == 2


def test_one_flow_never_takes_every_reader(source: Source) -> None:
    cache, good = Snapshots(4), Source()
    source.gate.clear()
    for number in range(20):
        cache.get(ReadKey("A->B", "coverage", f"topic-{number}"), source, 60.0)
    until(lambda: source.running == 2)
    assert settled(cache, ReadKey("B->A", "overview"), good).data == 1
    assert source.most == 2


def test_many_requests_for_one_flow_do_not_block_others() -> None:
    cache, gate, begun = Snapshots(4), threading.Event(), list[str]()

    def reading(name: str) -> Callable[[], tuple[Any, Problem | None, int]]:
        def read() -> tuple[Any, Problem | None, int]:
            begun.append(name)
            gate.wait(NEVER_SECONDS)
            return name, None, 1

        return read

    asked = [cache.get(ReadKey("A->B", "coverage", str(number)), reading(str(number)), 60.0) for number in range(1_000)]
    until(lambda: len(begun) == 2)
    refused = [snapshot.problem for snapshot, future in asked if future is None]
    assert len(refused) >= 1_000 - module.WAITING_A_FLOW - 4
    assert {problem.error for problem in refused if problem is not None} == {"TooManyReads"}
    assert len(cache._entries) <= module.WAITING_A_FLOW + 4
    _, future = cache.get(ReadKey("A->B", "overview"), reading("overview"), 60.0)
    assert future is not None
    gate.set()
    assert future.result(NEVER_SECONDS).data == "overview"
    assert begun.index("overview") == 2, "what everybody sees did not come first"


def test_memory_is_bounded_and_what_was_used_last_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.page.snapshots.KEPT_BYTES", 1000)
    cache = Snapshots(2)
    calls: list[int] = []

    def reading(number: int) -> Callable[[], tuple[Any, Problem | None, int]]:
        return lambda: (calls.append(number), None, 300)

    def look(number: int) -> None:
        future = cache.get(ReadKey("A->B", "coverage", str(number)), reading(number), 60.0)[1]
        if future is not None:
            future.result(NEVER_SECONDS)

    for number in (0, 1, 2, 0, 3, 0, 1):
        look(number)
    assert calls == [0, 1, 2, 3, 1]
