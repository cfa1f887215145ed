"""Refusing what may still arrive of a transaction that was abandoned.

With KIP-890 every end of a transaction raises the epoch, so a request of the last one that a broker comes to late (it waits in the
socket of a connection that a quota has muted, though the client has closed it) is refused. Before, EndTxn leaves the epoch: markers bear
the same one as the late batch, which the leader appends behind its abort marker, and the next transaction of the same producer would
commit it with its own. A marker of the next epoch in every partition of the transaction, of the group too, refuses it or aborts it with
the rest. Brokers from 3.6 on refuse it themselves, as long as transaction.partition.verification.enable is left alone.
"""

from __future__ import annotations

from collections.abc import Collection

from ferry.clusters.coordination import Coordinator, PositionsRefused, ProducerIdentity
from ferry.copying.appender import PartitionKey


async def refuse_late(coordinator: Coordinator, identity: ProducerIdentity, written: Collection[PartitionKey]) -> None:
    """After a settled transaction: `identity` is the next pair, `written` what was registered with the transaction (nothing with KIP-890).

    The pair stays the current one. Cut off in the middle, it is called again after the next settling.
    """
    if not written:
        return
    await coordinator.add_offsets(identity)
    left = set(written)
    while left:
        try:
            await coordinator.add_partitions(identity, left)
            break
        except PositionsRefused as problem:  # one that was deleted, or whose right is gone, refuses them all
            left.difference_update(problem.partitions)
    await coordinator.end(identity, committed=False, transactions_v2=False)
