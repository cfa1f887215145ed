"""The appender and answers that leave open whether the log holds the batch, against the same scripted broker."""

from __future__ import annotations

from typing import Any

import pytest
from tests.copying.appender_bench import Bench

from ferry.clusters.logs.producing import PartitionAnswer
from ferry.clusters.net.error_policy import PERHAPS_APPENDED

pytestmark = pytest.mark.unit


KEY = ("A.t", 0)
OUT_OF_ORDER = 45
REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS = 7, 19


def test_what_was_appended_too_slowly_is_asked_for_again_with_its_sequences(bench: Bench) -> None:
    """REQUEST_TIMED_OUT: the leader has the batches, its replicas had not; it knows them again by their sequences."""
    bench.enqueue((0,))
    bench.run()
    honest, asked = bench.broker._append, []

    def slow(key: tuple[str, int], sent: Any) -> PartitionAnswer:
        asked.append((sent.sequence, sent.batch.names))
        known = bench.broker.log[key][sent.sequence : sent.sequence + sent.batch.count]
        if known == list(sent.batch.names):
            return PartitionAnswer(*key, 0, sent.sequence, None)
        return honest(key, sent)._replace(error_code=REQUEST_TIMED_OUT, base_offset=-1)

    bench.broker._append = slow  # type: ignore[method-assign]
    bench.enqueue((1, 2), (3,))
    bench.run()
    assert asked == [(1, (1, 2)), (3, (3,))] * 2
    assert bench.broker.log[KEY] == [0, 1, 2, 3]
    assert bench.consistent()


@pytest.mark.parametrize("code", sorted(PERHAPS_APPENDED))
def test_what_the_log_may_hold_is_unclear_until_it_is_accepted(bench: Bench, code: int) -> None:
    bench.enqueue((0,))
    bench.run()
    bench.enqueue((1,), (2,))
    bench.broker.script.extend([code, NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS, OUT_OF_ORDER])
    bench.appender.pump()
    for _ in range(2):
        bench.broker.answer()
        bench.settle()
    assert bench.appender.unclear == [KEY]
    bench.clock.now += 1
    bench.appender.pump()
    for _ in range(2):
        bench.broker.answer()
        bench.settle()
    assert bench.appender.unclear == [KEY], "not appended this time says nothing about the time before"
    bench.run()
    assert bench.appender.unclear == []
    assert bench.consistent()


@pytest.mark.parametrize("answer", [OSError("not sent: no route"), NOT_ENOUGH_REPLICAS])
def test_what_was_never_appended_is_not_unclear(bench: Bench, answer: int | OSError) -> None:
    bench.enqueue((0,))
    bench.broker.script.append(answer)
    bench.appender.pump()
    bench.broker.answer()
    bench.settle()
    assert bench.appender.busy(KEY)
    assert bench.appender.unclear == []


def test_what_is_given_up_stays_unclear(bench: Bench) -> None:
    bench.broker.script.extend([REQUEST_TIMED_OUT] * 1_000)
    bench.enqueue((0,))
    bench.run()
    assert bench.appender.refusals.get(KEY) is not None
    assert bench.appender.unclear == [KEY]
