"""A transaction that ends while it is looked at: its partition showed it, its coordinator calls it complete, and it is open no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.logs import open_transactions as looking
from ferry.clusters.logs.held_back import OpenTransaction
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.partitions import TopicPartition

pytestmark = pytest.mark.unit

KEY = TopicPartition("orders", 0)
SHOWN = OpenTransaction(producer_id=7, epoch=1, start_offset=40, last_timestamp=1_000)
COMPLETE = SimpleNamespace(transactional_id="payments", transaction_state="CompleteCommit", topics=[])


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ((), 0),
        ((SHOWN,), 1),
        ((OpenTransaction(7, 2, 90, 2_000),), 0),  # the producer's next one
        ("its producers are hidden", 1),
    ],
)
def test_a_transaction_that_has_just_ended_is_not_called_forgotten(
    later: tuple[OpenTransaction, ...] | str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([(SHOWN,), later])

    async def producers(*_: Any) -> dict[TopicPartition, Any]:
        return {KEY: next(answers)}

    async def coordinated(*_: Any) -> dict[int, Any]:
        return {7: COMPLETE}

    async def nothing(_: object) -> None:
        return None

    leaders = SimpleNamespace(ask_two=nothing)
    monkeypatch.setattr(looking, "_of_leaders", producers)
    monkeypatch.setattr(looking, "_coordinated", coordinated)
    monkeypatch.setattr(looking, "Leaders", lambda *_: leaders)
    loop = EventLoop()
    found: Any = loop.run(looking._ask, SimpleNamespace(), [KEY])
    loop.close()
    assert [entry.forgotten for entry in found[KEY]] == [True] * left
