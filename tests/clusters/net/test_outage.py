"""A cluster is silent when none of its brokers has answered for long, though it was asked again and again."""

from __future__ import annotations

import pytest

from ferry.clusters.net.outage import LULL_SECONDS, CoordinatorOutage, Outage

pytestmark = pytest.mark.unit


def ask(outage: Outage, at: float, *, fails_after: float = 0.0) -> None:
    outage.asked(at)
    outage.failed(at, at + fails_after)


def test_refused_connections_add_up() -> None:
    outage = Outage()
    for second in range(80):
        ask(outage, 100.0 + second)
    assert outage.seconds(179.5) == 79.5


def test_brokers_that_accept_and_say_nothing_add_up() -> None:
    outage = Outage()
    ask(outage, 100.0, fails_after=40.0)
    assert outage.seconds(140.0) == 0.0, "one request that failed is none: this process may have been stopped"
    ask(outage, 140.0, fails_after=40.0)
    assert outage.seconds(180.0) == 80.0


def test_requests_that_left_together_are_one() -> None:
    outage = Outage()
    for _ in range(4):
        outage.asked(100.0)
    for _ in range(4):
        outage.failed(100.0, 190.0)
    assert outage.seconds(190.0) == 0.0
    ask(outage, 190.5)
    assert outage.seconds(190.5) == 90.5


def test_any_answer_ends_it() -> None:
    outage = Outage()
    outage.asked(100.0)  # to a broker that hangs
    for second in range(60):
        ask(outage, 100.0 + second)
    outage.asked(160.0)
    outage.answered(161.0)
    assert outage.seconds(161.0) == 0.0
    outage.failed(100.0, 170.0)
    ask(outage, 170.0)
    assert outage.seconds(170.0) == 9.0, "since the answer, because the first request still waited for its own"


def test_without_requests_there_is_no_outage() -> None:
    outage = Outage()
    ask(outage, 100.0)
    ask(outage, 101.0)
    ask(outage, 101.0 + LULL_SECONDS + 600.0)
    assert outage.seconds(101.0 + LULL_SECONDS + 600.0) == 0.0
    ask(outage, 101.0 + LULL_SECONDS + 605.0)
    assert outage.seconds(101.0 + LULL_SECONDS + 605.0) == 5.0
    assert outage.seconds(101.0 + 2 * LULL_SECONDS + 606.0) == 0.0


def test_an_outage_of_coordinators_lasts_from_one_lane_to_the_next_until_a_coordinator_takes_a_request() -> None:
    coordinators = CoordinatorOutage()
    for second in range(76):
        coordinators.failed(100.0 + second, 100.0 + second)
    coordinators.failed(177.0, 177.0)  # of the next lane
    assert coordinators.seconds(177.0) == 77.0
    coordinators.over()
    assert coordinators.seconds(178.0) == 0.0
    coordinators.failed(178.0, 218.0)
    coordinators.failed(218.0 + LULL_SECONDS + 1.0, 218.0 + LULL_SECONDS + 1.0)
    assert coordinators.seconds(218.0 + LULL_SECONDS + 1.0) == 0.0, "nobody asked for a while: another trouble"
