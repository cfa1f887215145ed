"""RefusedRecord records that are left out alone (abort.on.send.failure=false): nothing else is lost, and order stays."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.copying.appender_bench import INVALID_TIMESTAMP, KEY, NOT_LEADER, TOO_LARGE, Broker, FakeBatch, new_bench

from ferry.clusters.logs.producing import PartitionAnswer
from ferry.clusters.net.error_policy import PRODUCE
from ferry.wire.split import Indivisible

pytestmark = pytest.mark.unit

pytestmark = pytest.mark.unit


class _Choosy:
    """Passing errors, and refusals of whatever batch holds a bad record, before or after the sequence check."""

    def __init__(self, broker: Broker, bad: set[int], code: int, answers: list[int | None], early: bool) -> None:
        self._append, self._broker = broker._append, broker
        self._bad, self._code, self._answers, self._early = bad, code, deque(answers), early

    def __call__(self, key: tuple[str, int], batch: Any) -> Any:
        passing = self._answers.popleft() if self._answers else None
        if passing is not None:
            return PartitionAnswer(*key, passing, -1, None)
        in_order = batch.sequence == self._broker.expected.get(key, 0)
        if self._bad.intersection(batch.batch.names) and (in_order or self._early):
            return PartitionAnswer(*key, self._code, -1, None)
        return self._append(key, batch)


@given(st.data(), st.sampled_from([TOO_LARGE, INVALID_TIMESTAMP]), st.booleans())
def test_refused_records_alone_are_left_out_in_order(data: st.DataObject, code: int, early: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        bench = new_bench(patch.setattr, skips=True)
        sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=15))
        total = sum(sizes)
        bad = data.draw(st.sets(st.integers(0, total - 1)))
        names = iter(range(total))
        bench.enqueue(*[tuple(next(names) for _ in range(size)) for size in sizes])
        answers = data.draw(st.lists(st.sampled_from([None, None, None, NOT_LEADER]), max_size=20))
        bench.broker._append = _Choosy(bench.broker, bad, code, answers, early)  # type: ignore[method-assign]
        bench.run()
        assert bench.names == list(range(total))
        assert bench.broker.log.get(KEY, []) == [name for name in range(total) if name not in bad]
        assert [(refused.key, refused.batch.names) for refused in bench.refused] == [(KEY, (name,)) for name in sorted(bad)]
        assert {refused.problem for refused in bench.refused} <= {PRODUCE.told(code)}
        assert bench.appender.refusals.get(KEY) is None
        assert bench.consistent()


@pytest.mark.parametrize("code", [29, 17, 53])
def test_what_no_record_gets_past_stops_the_partition_all_the_same(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    bench = new_bench(monkeypatch.setattr, skips=True)
    bench.enqueue((0,), (1, 2), (3,))
    bench.broker.script.extend([None, code])
    bench.run()
    assert bench.broker.log[KEY] == [0]
    assert bench.appender.refusals.get(KEY) is not None
    assert bench.refused == []


def test_outputs_of_one_record_that_are_too_large_together_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(unit: FakeBatch) -> tuple[FakeBatch, FakeBatch]:
        raise Indivisible("made of one record")

    for skips in (True, False):
        bench = new_bench(monkeypatch.setattr, skips=skips)
        monkeypatch.setattr(bench.appender, "_halve", whole)
        bench.enqueue((0,), (1, 2), (3,))
        bench.broker.script.extend([None, TOO_LARGE])
        bench.run()
        refusal = bench.appender.refusals.get(KEY)
        assert bench.broker.log[KEY] == ([0, 3] if skips else [0])
        assert [refused.batch.names for refused in bench.refused] == ([(1, 2)] if skips else [])
        assert refusal is None if skips else refusal is not None and "made of one record" in refusal.problem
