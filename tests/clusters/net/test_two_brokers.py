"""A question to two brokers: it waits for both, but not for long, and one of them may be away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka.future import Future

from ferry.clusters.net import connections
from ferry.clusters.net.connections import ClusterConnection, RequestLost
from ferry.clusters.net.event_loop import EventLoop

pytestmark = pytest.mark.unit

LOST, SILENT = "lost", "silent"


class Brokers(ClusterConnection):
    """Brokers by node id, each with what it answers."""

    def __init__(self, loop: EventLoop, answers: dict[int, str]) -> None:
        self.loop, self.answers = loop, answers
        self.asked: list[int | None] = []

    def _any_node(self, asked: object) -> int | None:
        return next((node for node in self.answers if node not in asked), None)  # type: ignore[operator] - a collection

    async def send(self, request: object, node: int | None = None, milliseconds: int | None = None) -> str:  # noqa: ARG002 - as the real one
        self.asked.append(node)
        answer = "any" if node is None else self.answers[node]
        if answer == LOST:
            raise RequestLost(LOST)
        if answer == SILENT:
            await Future()
        return answer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[int, str]], tuple[list[str], list[int | None]]]]:
    monkeypatch.setattr(connections, "BOTH_SECONDS", 0.1)
    loop = EventLoop()

    def ask(answers: dict[int, str]) -> tuple[list[str], list[int | None]]:
        made = Brokers(loop, answers)
        return loop.run(made.answers_of_two, None), made.asked

    yield ask
    loop.close()


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({1: "a", 2: "b", 3: "c"}, (["a", "b"], [1, 2])),
        ({1: "a"}, (["a"], [1])),
        ({1: LOST, 2: "b"}, (["b"], [1, 2])),
        ({1: "a", 2: LOST, 3: "c"}, (["a", "c"], [1, 2, 3])),
        ({1: "a", 2: SILENT}, (["a"], [1, 2])),
        ({1: "a", 2: SILENT, 3: "c"}, (["a", "c"], [1, 2, 3])),
        ({1: SILENT, 2: LOST}, (["any"], [1, 2, None])),
        ({}, (["any"], [None])),
    ],
    ids=["both", "one broker", "one lost", "another one instead", "one silent", "another one beside it", "none", "none known"],
)
def test_two_brokers_answer(
    answers: dict[int, str],
    told: tuple[list[str], list[int | None]],
    asked: Callable[[dict[int, str]], tuple[list[str], list[int | None]]],
) -> None:
    begun = time.monotonic()
    assert asked(answers) == told
    assert time.monotonic() - begun < 5.0
