"""A cluster is silent when none of its brokers has answered for long, though it was asked again and again."""

from __future__ import annotations

import pytest

from ferry.clusters.unreachable import LULL_SECONDS, Silence, Standstill

pytestmark = pytest.mark.unit


def ask(silence: Silence, at: float, *, fails_after: float = 0.0) -> None:
    silence.asked(at)
    silence.failed(at, at + fails_after)


def test_refused_connections_add_up() -> None:
    silence = Silence()
    for second in range(80):
        ask(silence, 100.0 + second)
    assert silence.seconds(179.5) == 79.5


def test_brokers_that_accept_and_say_nothing_add_up() -> None:
    silence = Silence()
    ask(silence, 100.0, fails_after=40.0)
    assert silence.seconds(140.0) == 0.0, "one request that failed is none: this process may have been stopped"
    ask(silence, 140.0, fails_after=40.0)
    assert silence.seconds(180.0) == 80.0


def test_requests_that_left_together_are_one() -> None:
    silence = Silence()
    for _ in range(4):
        silence.asked(100.0)
    for _ in range(4):
        silence.failed(100.0, 190.0)
    assert silence.seconds(190.0) == 0.0
    ask(silence, 190.5)
    assert silence.seconds(190.5) == 90.5


def test_any_answer_ends_it() -> None:
    silence = Silence()
    silence.asked(100.0)  # to a broker that hangs
    for second in range(60):
        ask(silence, 100.0 + second)
    silence.asked(160.0)
    silence.answered(161.0)
    assert silence.seconds(161.0) == 0.0
    silence.failed(100.0, 170.0)
    ask(silence, 170.0)
    assert silence.seconds(170.0) == 9.0, "since the answer, because the first request still waited for its own"


def test_nothing_is_asked_nothing_is_silent() -> None:
    silence = Silence()
    ask(silence, 100.0)
    ask(silence, 101.0)
    ask(silence, 101.0 + LULL_SECONDS + 600.0)
    assert silence.seconds(101.0 + LULL_SECONDS + 600.0) == 0.0
    ask(silence, 101.0 + LULL_SECONDS + 605.0)
    assert silence.seconds(101.0 + LULL_SECONDS + 605.0) == 5.0
    assert silence.seconds(101.0 + 2 * LULL_SECONDS + 606.0) == 0.0


def test_a_standstill_lasts_from_one_lane_to_the_next_until_a_coordinator_takes_a_request() -> None:
    standstill = Standstill()
    for second in range(76):
        standstill.failed(100.0 + second, 100.0 + second)
    standstill.failed(177.0, 177.0)  # of the next lane
    assert standstill.seconds(177.0) == 77.0
    standstill.over()
    assert standstill.seconds(178.0) == 0.0
    standstill.failed(178.0, 218.0)
    standstill.failed(218.0 + LULL_SECONDS + 1.0, 218.0 + LULL_SECONDS + 1.0)
    assert standstill.seconds(218.0 + LULL_SECONDS + 1.0) == 0.0, "nobody asked for a while: another trouble"
