"""How a lane makes a segment count, when all its records are acknowledged: with a transaction, or without one by a flush.

A transaction holds the records, and then the receipts, heads and positions; EndTxn makes all of them count at once. A flush writes them one
after the other, and waits for the acknowledgement of each: so a receipt is there only if its records are, a head only if the receipts of
everything before it are, and a position is not ahead of its head. If the lane dies in between, the records since the last head are copied
again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ferry.clusters.groups.coordination import Coordinator, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.net.connections import RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, together
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.internal_writer import InternalWriter
from ferry.errors import ClusterUnreachable

log = logging.getLogger(__name__)

# Attempts to append heads. Each may take as long as Ferry waits for a leader.
ATTEMPTS = 6

Records = Mapping[TopicPartition, list[KeyValue]]
Register = Callable[[Iterable[TopicPartition]], Awaitable[None]]


@dataclass(frozen=True)
class Settled:
    """What the lane writes about a segment."""

    receipts: Records
    heads: Records
    positions: Mapping[TopicPartition, CommittedOffset]


class TransactionEnd:
    """`register`: adds partitions to the transaction; None with KIP-890, where brokers do it."""

    def __init__(self, loop: EventLoop, coordinator: Coordinator, ledger: InternalWriter, register: Register | None) -> None:
        self._loop, self._coordinator, self._ledger, self._register = loop, coordinator, ledger, register

    def adopt(self, identity: ProducerIdentity) -> None:
        self._ledger.adopt(identity)

    async def prepare(self, identity: ProducerIdentity, found: Settled) -> None:
        """Add everything to the transaction, side by side. It can be given up afterwards. PositionsRefused, OutcomeUnknown."""
        records = {**found.receipts, **found.heads}
        if self._register is not None:
            await self._register(records)
        commit = partial(self._coordinator.commit_positions, identity, found.positions, transactions_v2=self._register is None)
        await together([self._loop.start(self._ledger.append, records), self._loop.start(commit)])

    async def end(self, identity: ProducerIdentity, found: Settled) -> ProducerIdentity:  # noqa: ARG002 - as of FlushEnd
        """EndTxn. The pair to continue with. OutcomeUnknown: the segment may count; `found.positions` on the target show it."""
        return await self._coordinator.end(identity, committed=True, transactions_v2=self._register is None)


class FlushEnd:
    """`new_ledger`: a new writer, after the log may hold what the last one sent. `stop`: for partitions whose positions are refused."""

    def __init__(
        self, coordinator: Coordinator, new_ledger: Callable[[], InternalWriter], stop: Callable[[PositionsRefused], None]
    ) -> None:
        self._coordinator, self._new_ledger, self._stop = coordinator, new_ledger, stop
        self._ledger = new_ledger()

    def adopt(self, identity: ProducerIdentity) -> None:
        self._ledger.adopt(identity)

    async def prepare(self, identity: ProducerIdentity, found: Settled) -> None:  # noqa: ARG002 - as of TransactionEnd
        """Append the receipts: the segment does not count yet."""
        await self._ledger.append(found.receipts)

    async def end(self, identity: ProducerIdentity, found: Settled) -> ProducerIdentity:
        """Append the heads, then commit the positions. A position that cannot be written stays behind its head, which counts."""
        identity = await self._append(identity, found.heads)
        try:
            await self._coordinator.commit_positions(identity, found.positions, transactions_v2=True)
        except PositionsRefused as problem:
            with suppress(OutcomeUnknown):  # the flush counts nevertheless
                self._stop(problem)
        except OutcomeUnknown as problem:
            log.warning("positions stay behind until the next flush: %s", problem)
        return identity

    async def _append(self, identity: ProducerIdentity, heads: Records) -> ProducerIdentity:
        """Append heads until they are acknowledged, so that it is clear which segments count. The log may hold the same heads twice."""
        for _ in range(ATTEMPTS):
            try:
                await self._ledger.append(heads)
            except (OutcomeUnknown, RequestLost, RequestNotSent) as problem:
                log.warning("heads are appended once more: %s", problem)
                identity = await self._coordinator.prove(identity, transactions_v2=True)
                self._ledger = self._new_ledger()
                self._ledger.adopt(identity)
            else:
                return identity
        raise ClusterUnreachable(f"the state topic did not acknowledge heads in {ATTEMPTS} attempts")
