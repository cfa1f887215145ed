"""What a lane does while nothing arrives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ferry.clusters.groups.coordination import Fenced, ProducerIdentity
from ferry.copying.following import Following
from ferry.copying.lane import LOOK_SECONDS, Lane
from ferry.copying.transaction import TransactionState

pytestmark = pytest.mark.unit


class Target:
    """Its leaders and what waits to be sent there, as far as an idle lane asks."""

    def __init__(self) -> None:
        self.age, self.rested, self.leaders_stale, self.refreshed = 0.0, True, False, 0

    async def refresh(self) -> None:
        self.refreshed += 1


def idle(target: Target, proofs: list[ProducerIdentity | Exception], state: TransactionState) -> tuple[Lane, list[ProducerIdentity]]:
    lane: Any = Lane.__new__(Lane)
    adopted: list[ProducerIdentity] = []

    async def prove() -> ProducerIdentity:
        proof = proofs.pop(0)
        if isinstance(proof, Exception):
            raise proof
        return proof

    lane._following, lane._state = Following(1e12, 0.1), state
    lane._target_leaders = lane._records = target
    lane._check_remote_topics, lane._prove, lane._adopt = lambda: False, prove, adopted.append
    return lane, adopted


def test_an_idle_lane_proves_from_time_to_time_that_it_holds_its_id() -> None:
    target, proven = Target(), ProducerIdentity(1, 2)
    lane, adopted = idle(target, [proven, Fenced("another run has it")], TransactionState.READY)
    asyncio.run(lane._mend_target())
    assert (adopted, target.refreshed) == ([], 0)
    target.age = LOOK_SECONDS + 1
    asyncio.run(lane._mend_target())
    assert (adopted, target.refreshed) == ([proven], 1)
    with pytest.raises(Fenced):
        asyncio.run(lane._mend_target())


def test_an_open_transaction_is_not_aborted_by_a_proof() -> None:
    target = Target()
    lane, adopted = idle(target, [], TransactionState.OPEN)
    target.age, target.leaders_stale = LOOK_SECONDS + 1, True
    asyncio.run(lane._mend_target())
    assert (adopted, target.refreshed) == ([], 1)
