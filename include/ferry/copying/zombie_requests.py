"""Fences zombie requests: requests of an abandoned transaction that a broker handles only after the transaction has ended.

Such a request waits in the socket of a connection that a quota has muted, although the client has closed it. With KIP-890 every end of a
transaction raises the epoch, so the broker refuses the request. Without KIP-890, EndTxn keeps the epoch: the leader appends the zombie
batch after the abort marker, and the next transaction of the same producer would commit it. So Ferry ends one more, empty transaction with
the next epoch in every partition of the old one, and in the group. Its markers make the leader refuse the zombie batch, or abort it.
Brokers from 3.6 on refuse it themselves, unless transaction.partition.verification.enable was set to false.
"""

from collections.abc import Collection

from ferry.clusters.coordination import Coordinator, PositionsRefused, ProducerIdentity
from ferry.clusters.partitions import TopicPartition


async def fence_zombie_requests(coordinator: Coordinator, identity: ProducerIdentity, written: Collection[TopicPartition]) -> None:
    """Call it after a transaction was settled. `written`: the partitions that were added to it (none with KIP-890).

    `identity`: the producer id and epoch since then; they stay the current ones. If a request fails, the lane settles and calls it again.
    """
    if not written:
        return
    await coordinator.add_offsets(identity)
    left: set[tuple[str, int]] = set(written)
    while left:
        try:
            await coordinator.add_partitions(identity, left)
            break
        except PositionsRefused as problem:  # one deleted partition, or one without the right, makes the request fail for all
            left.difference_update(problem.partitions)
    await coordinator.end(identity, committed=False, transactions_v2=False)
