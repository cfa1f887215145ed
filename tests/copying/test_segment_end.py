"""The order of what a flush writes, and what it does when an answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ferry.clusters.groups.coordination import OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.segment_end import ATTEMPTS, FlushEnd, Settled
from ferry.errors import ClusterUnreachable

pytestmark = pytest.mark.unit

LEDGER, STATE, REMOTE = TopicPartition("ledger", 0), TopicPartition("state", 0), TopicPartition("A.t", 0)
SETTLED = Settled({LEDGER: [(b"receipt", b"")]}, {STATE: [(b"head", b"")]}, {REMOTE: CommittedOffset(9)})
FIRST = ProducerIdentity(1, 1)


class Target:
    """Notes what is written. `lost`: so many heads are appended, and their answer is lost. `refusal`: of positions."""

    def __init__(self, lost: int = 0, refusal: Exception | None = None) -> None:
        self.written: list[object] = []
        self.stopped: list[PositionsRefused] = []
        self._lost, self._refusal, self._epoch = lost, refusal, 1

    def writer(self) -> Any:
        target, held = self, list[ProducerIdentity]()

        class Writer:
            def adopt(self, identity: ProducerIdentity) -> None:
                held[:] = [identity]

            async def append(self, records: dict[TopicPartition, list[tuple[bytes, bytes]]]) -> None:
                ((key, [(name, _)]),) = records.items()
                target.written.append((key.topic, name, held[0].epoch))
                if key == STATE and target._lost:
                    target._lost -= 1
                    raise OutcomeUnknown("lost")

        return Writer()

    async def prove(self, identity: ProducerIdentity, **_: bool) -> ProducerIdentity:
        return identity._replace(epoch=identity.epoch + 2)

    async def commit_positions(self, _: ProducerIdentity, positions: object, **__: bool) -> None:
        self.written.append(("positions", positions))
        if self._refusal is not None:
            raise self._refusal


def flush(target: Target) -> ProducerIdentity:
    coordinator: Any = target
    new_ledger: Callable[[], Any] = target.writer
    ending = FlushEnd(coordinator, new_ledger, target.stopped.append)
    ending.adopt(FIRST)

    async def whole() -> ProducerIdentity:
        await ending.prepare(FIRST, SETTLED)
        return await ending.end(FIRST, SETTLED)

    return asyncio.run(whole())


def test_receipts_then_heads_then_positions() -> None:
    target = Target()
    assert flush(target) == FIRST
    assert target.written == [("ledger", b"receipt", 1), ("state", b"head", 1), ("positions", SETTLED.positions)]


def test_heads_are_appended_until_they_are_acknowledged() -> None:
    target = Target(lost=2)
    assert flush(target) == FIRST._replace(epoch=5)
    assert [entry for entry in target.written if entry[0] == "state"] == [("state", b"head", epoch) for epoch in (1, 3, 5)]  # type: ignore[index]
    with pytest.raises(ClusterUnreachable):
        flush(Target(lost=ATTEMPTS))


@pytest.mark.parametrize("refusal", [OutcomeUnknown("lost"), PositionsRefused((REMOTE,), "Read")])
def test_a_position_that_is_not_written_undoes_nothing(refusal: Exception) -> None:
    target = Target(refusal=refusal)
    assert flush(target) == FIRST
    assert target.stopped == [refusal] * isinstance(refusal, PositionsRefused)
