"""What a lane may send and hold: windows, budgets and shares of memory, by simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.appender_bench import Bench, new_bench

from ferry.copying.buffer_limits import (
    BURST_SECONDS,
    PAUSE_SECONDS,
    SMALLEST_BYTES,
    BufferLimits,
    InFlightLimit,
    RateLimiter,
    buffer_limits,
)
from ferry.copying.lane_runner import LANES_BESIDE

pytestmark = pytest.mark.unit

MEBIBYTE = 1 << 20
# Of a broker's quota: ten samples of a second and the current one (quota.window.num, quota.window.size.seconds).
QUOTA_SECONDS = 10.0


@given(st.floats(20_000, 5e7), st.integers(10_000, 1_000_000))
def test_a_window_leaves_no_request_waiting_for_long_behind_pauses(quota: float, batch: int) -> None:
    """Kafka's rule: the pause is what brings the average over the last ten seconds back to the quota."""
    limit, now, sent = InFlightLimit(16 * MEBIBYTE), 100.0, [(0.0, 0)]
    longest = 0.0
    for _ in range(60):
        flight = []
        while limit.room > 0 and len(flight) < 4:
            flight.append(batch)
            limit.sent(batch)
        assert flight, "nothing may be sent, although nothing is under way"
        left_at = now
        for size in flight:  # the broker reads the next one after the pause that the last one costs
            longest = max(longest, now - left_at)
            sent.append((now, size))
            rate = sum(part for moment, part in sent if moment > now - QUOTA_SECONDS) / QUOTA_SECONDS
            pause = max(0.0, (rate - quota) / quota * QUOTA_SECONDS)
            now += 0.001 + pause
            limit.answered(size, pause)
    assert limit.in_flight == 0
    # A request is given up after 30 s. One batch alone may cost a long pause, but nothing waits behind it.
    assert longest < 30.0 or batch / quota > 4


def test_a_window_opens_again() -> None:
    limit = InFlightLimit(16 * MEBIBYTE)
    limit.sent(MEBIBYTE)
    limit.answered(MEBIBYTE, 2 * PAUSE_SECONDS)
    assert limit.size == MEBIBYTE // 2
    limit.sent(MEBIBYTE // 4)
    limit.answered(MEBIBYTE // 4, 0.5)
    assert limit.size == MEBIBYTE // 4, "a short pause too: no more than what cost it"
    limit.sent(10)
    limit.answered(10)
    assert limit.size == MEBIBYTE // 2
    for _ in range(20):
        limit.sent(10)
        limit.answered(10, 1_000.0)
    assert limit.size == SMALLEST_BYTES
    for _ in range(20):
        limit.sent(10)
        limit.answered(10)
    assert (limit.size, limit.in_flight) == (16 * MEBIBYTE, 0)


@given(st.floats(1e4, 1e8), st.lists(st.tuples(st.integers(1, 200_000), st.floats(0.0, 0.3)), min_size=50, max_size=200))
def test_a_budget_is_never_exceeded_by_more_than_one_call_and_a_burst(rate: float, calls: list[tuple[int, float]]) -> None:
    budget, now, spent, largest = RateLimiter(rate, 0.0), 0.0, 0, 0
    for size, pause in calls:
        now += pause
        if budget.allows(now):
            budget.spend(size)
            spent, largest = spent + size, max(largest, size)
        assert spent <= rate * (now + BURST_SECONDS) + largest


def test_a_budget_is_used_up_by_one_who_always_has_more() -> None:
    budget, spent = RateLimiter(1_000_000.0, 0.0), 0
    for step in range(200):  # ten seconds, looked at every 50 ms
        while budget.allows(step * 0.05):
            budget.spend(30_000)
            spent += 30_000
    assert 9_700_000 <= spent <= 10_300_000


def test_what_a_budget_did_not_spend_is_gone_after_a_burst() -> None:
    budget, sent = RateLimiter(1_000_000.0, 0.0), 0
    assert budget.allows(0.0), "nothing is owed at first"
    budget.spend(1)
    assert not budget.allows(0.0)
    while budget.allows(60.0):
        budget.spend(1_000)
        sent += 1_000
    assert sent == 1_000_000 * BURST_SECONDS + 1_000


def test_without_a_rate_everything_is_allowed() -> None:
    budget = RateLimiter(None, 0.0)
    budget.spend(1 << 40)
    assert budget.allows(0.0)


@given(st.integers(128, 4_096), st.one_of(st.none(), st.floats(10_000.0, 1e10)), st.booleans(), st.integers(1, LANES_BESIDE))
def test_the_parts_of_the_memory_fit_it(megabytes: int, rate: float | None, handled: bool, beside: int) -> None:
    """Lanes side by side share what may be held; one of them at a time transforms a batch."""
    memory = megabytes * MEBIBYTE
    allowed = buffer_limits(memory, rate, handled=handled, beside=beside)
    copies = 8 if handled else 4
    assert allowed.held + copies * allowed.opened <= memory
    # What waits, what is under way and the next fetch are all held at once.
    assert beside * (allowed.waiting + allowed.in_flight + 2 * allowed.fetch) <= allowed.held + beside * allowed.fetch
    assert min(allowed) >= SMALLEST_BYTES
    if rate is not None and rate < 1e6:
        assert max(allowed.fetch, allowed.waiting, allowed.in_flight) <= 500_000


@pytest.mark.parametrize(
    ("memory", "rate", "handled", "allowed"),
    [
        (512 * MEBIBYTE, None, False, [16 * MEBIBYTE, 8 * MEBIBYTE, 16 * MEBIBYTE, 24 * MEBIBYTE, 160 * MEBIBYTE, 89_478_485]),
        (512 * MEBIBYTE, 1e6, True, [500_000, 500_000, 250_000, 500_000, 160 * MEBIBYTE, 44_739_242]),
        (
            512 * MEBIBYTE,
            1.0,
            False,
            [2 * SMALLEST_BYTES, 2 * SMALLEST_BYTES, SMALLEST_BYTES, 2 * SMALLEST_BYTES, 160 * MEBIBYTE, 89_478_485],
        ),
        (10_000_003, None, True, [781_250, 781_250, 781_250, 781_250, 3_125_000, 833_333]),
        (10_000_003, 1e9, False, [781_250, 781_250, 781_250, 781_250, 3_125_000, 1_666_667]),
    ],
)
def test_what_each_bound_comes_to(memory: int, rate: float | None, handled: bool, allowed: list[int]) -> None:
    """Whole bytes, and each of the three bounds of a part once: its own, a share of the memory, a slice of the bandwidth."""
    found = buffer_limits(memory, rate, handled=handled)
    assert found == BufferLimits(*allowed)
    assert all(type(part) is int for part in found)


def test_the_default_takes_records_of_64_mib_in_every_treatment() -> None:
    assert buffer_limits(512 * MEBIBYTE, None, handled=False).opened > 65 * MEBIBYTE


def test_a_broker_that_asks_for_a_pause_gets_it_and_less_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench: Bench = new_bench(monkeypatch.setattr)
    bench.enqueue((0,))
    bench.broker.pauses.append(60_000)
    bench.run()
    bench.enqueue(*[tuple(range(number, number + 400)) for number in range(1, 4_000, 400)])  # 40 kB each
    bench.broker.paused = True
    bench.clock.now += 1_000
    assert bench.appender.pump() == 0
    bench.broker.paused = False
    assert bench.appender.pump() == 80_000  # two requests, then the limit of 64 KiB is full
    bench.run()
    assert bench.appender.refusals.get(("A.t", 0)) is None
    assert bench.broker.log["A.t", 0] == list(range(4_001))


def test_a_window_that_is_just_full_lets_nothing_more_through(monkeypatch: pytest.MonkeyPatch) -> None:
    bench: Bench = new_bench(monkeypatch.setattr)
    other = ("A.t", 1)
    bench.enqueue(tuple(range(1_600)))
    bench.enqueue((0,), key=other)
    bench.run()
    bench.appender._in_flight_limits[1].size = 80_000
    bench.enqueue(*[tuple(range(number, number + 400)) for number in range(1_600, 2_800, 400)])
    assert (bench.appender.pump(), len(bench.broker.requests)) == (80_000, 2)
    bench.run()
    bench.appender._in_flight_limits[1].size = 80_000
    bench.enqueue(tuple(range(2_800, 3_600)))
    bench.enqueue((1,), key=other)
    assert (bench.appender.pump(), len(bench.broker.requests)) == (80_000, 1)


def test_a_window_shrinks_to_what_costs_a_pause_of_four_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    bench: Bench = new_bench(monkeypatch.setattr)
    bench.enqueue(tuple(range(1_600)))
    bench.broker.pauses.append(8_000)
    bench.run()
    assert bench.appender._in_flight_limits[1].size == 80_000
