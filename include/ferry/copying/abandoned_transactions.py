"""Remains of transactions that did not end as they should, and how a lane keeps them out of the copy.

Hanging transactions: after InitProducerId the coordinator regards every transaction of the transactional id as ended. But if a broker was
killed around EndTxn, some partitions may lack the marker while others have it, perhaps the one with the positions
(docs/decisions/007-hanging-transactions.md). The next marker of the same producer would end the old records together with new ones. A
commit would then double them if the position does not count them, and an abort would lose them if it does. So Ferry appends nothing to such
a partition.

Zombie requests: a broker may handle requests of an abandoned transaction only after the transaction has ended, because they waited in the
socket of a connection that a quota has muted, although the client has closed it. With KIP-890 every end of a transaction raises the epoch,
so the broker refuses the request. Without KIP-890, EndTxn keeps the epoch: the leader appends the zombie batch after the abort marker, and
the next transaction of the same producer would commit it. So Ferry ends one more transaction, an empty one with the next epoch, in every
partition of the old one and in the group. Its markers make the leader refuse the zombie batch, or abort it. Brokers from 3.6 on refuse it
themselves, unless transaction.partition.verification.enable was set to false.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NoReturn

from ferry.clusters.groups.coordination import Coordinator, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.logs.open_transactions import open_of
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.cursor import PartitionCursor
from ferry.errors import BatchRefused, TargetRecreated, TransactionHangs


async def stop_hanging(
    target: ClusterConnection,
    leaders: Leaders,
    cursors: Mapping[TopicPartition, PartitionCursor],
    producer_ids: Collection[int],
    prove: Callable[[], Awaitable[None]],
) -> set[TopicPartition]:
    """Stop partitions where a transaction hangs. `producer_ids`: what InitProducerId returned for all lanes. RequestNotSent, RequestLost.

    `prove`: called before any is stopped. Fenced if a newer run has the lane: then the transaction may be that run's.

    Returns the partitions whose leader did not answer: ask for them again before appending to them. Brokers before 2.8 show no open
    transactions, nor does any broker without Read on the topic; such partitions are not stopped.
    """
    wanted = [key for key, cursor in cursors.items() if cursor.failure is None]
    told = await open_of(target, leaders, wanted, producer_ids)
    if any(told.values()):  # a leader that was replaced without knowing it shows transactions that have ended since
        asked = {key: leaders.of(*key) for key in told}
        await leaders.ask_two({key.topic for key in told})
        told = {key: found for key, found in told.items() if leaders.of(*key) == asked[key]}
    if any(told.values()):
        await prove()
    for key, found in told.items():
        if found is not None:
            where = f"cluster {target.alias}, {key.topic}-{key.partition}"
            what = f"a transaction of this flow is open from offset {found.start_offset} on, and its coordinator has forgotten it"
            whose = f"producer id {found.producer_id}, epoch {found.epoch}"
            remedy = (
                "end it as ferry status says, then let ferry verify tell whether records are missing, which ferry seed has copied again"
            )
            cursors[key].stop(TransactionHangs, f"{where}: {what} ({whose}): {remedy}")
    return {key for key in wanted if key not in told}


async def fence_zombie_requests(
    coordinator: Coordinator, identity: ProducerIdentity, written: Collection[TopicPartition]
) -> ProducerIdentity:
    """Call it after a transaction was ended. `written`: the partitions that were added to it (none with KIP-890).

    `identity`: the producer id and epoch since then. Returns the pair to continue with. If a request fails, the lane calls it again.
    """
    if not written:
        return identity
    await coordinator.add_offsets(identity)
    left: set[tuple[str, int]] = set(written)
    while left:
        try:
            await coordinator.add_partitions(identity, left)
            break
        except PositionsRefused as problem:  # one deleted partition, or one without the right, makes the request fail for all
            left.difference_update(problem.partitions)
    # This abort may be sent twice, and the first of the two arrive last. With the next epoch it cannot end the next transaction.
    return await coordinator.init(await coordinator.end(identity, committed=False, transactions_v2=False))


def stop_refused(problem: PositionsRefused, cursors: Mapping[TopicPartition, PartitionCursor], target: ClusterConnection) -> NoReturn:
    """Stop partitions whose positions the target refuses: they were deleted, or a right on their topic is missing. Raises OutcomeUnknown.

    Their records must not be committed without a position: so the lane abandons this transaction, and its other partitions go on in a new
    one. NotAuthorized for one of Ferry's own topics, which all partitions need. If such a topic is gone, the lane tries a few times more.
    """
    right = problem.right
    for topic, partition in problem.partitions:
        cursor = cursors.get(TopicPartition(topic, partition))
        if cursor is None and right:
            raise target.denied(f"writing to {topic}", f"{right} on topic {topic}") from problem
        if cursor is not None and right:
            what = f"remote topic {topic}, source offset {cursor.task.position}: not allowed"
            cursor.stop(BatchRefused, f"{what}: {target.granting(f'{right} on topic {topic}')}")
        elif cursor is not None:
            cursor.stop(TargetRecreated, f"remote topic {topic} was deleted")
    raise OutcomeUnknown(str(problem)) from problem
