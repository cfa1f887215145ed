"""How long one task of the loop waits for another."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest
from kafka.future import Future

from ferry.clusters.net.event_loop import EventLoop

pytestmark = pytest.mark.unit


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


async def late(loop: EventLoop, problem: Exception | None) -> str:
    await loop.sleep(0.01)
    if problem is not None:
        raise problem
    return "done"


@pytest.mark.parametrize("problem", [None, ValueError("failed")])
@pytest.mark.parametrize("seconds", [900.0, math.inf])
def test_a_wait_lasts_until_the_other_task_has_ended(seconds: float, problem: Exception | None, loop: EventLoop) -> None:
    started = loop.start(late, loop, problem)
    assert not started.is_done
    assert loop.run(loop.done_by, time.monotonic() + seconds, started) is True
    assert (started.is_done, started.exception) == (True, problem)


def test_a_wait_ends_at_its_deadline(loop: EventLoop) -> None:
    assert loop.run(loop.done_by, time.monotonic() + 0.01, Future()) is False
