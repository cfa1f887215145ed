"""Stops remote partitions in which an older transaction of the flow hangs: its coordinator has ended it, but the partition has no marker.

After InitProducerId the coordinator regards every transaction of the transactional id as ended. But if a broker was killed around EndTxn,
some partitions may lack the marker while others have it, perhaps the one with the positions (docs/decisions/007-hanging-transactions.md).
The next marker of the same producer would end the old records together with new ones. A commit would then double them if the position does
not count them, and an abort would lose them if it does. So Ferry appends nothing to such a partition. It looks for the producers of all
lanes: if an earlier run had another number of lanes, the partition belonged to another lane.
"""

from collections.abc import Collection, Mapping

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.leaders import Leaders
from ferry.clusters.open_transactions import open_of
from ferry.clusters.partitions import TopicPartition
from ferry.copying.cursor import PartitionCursor
from ferry.errors import TransactionHangs


async def stop_hanging(
    target: ClusterConnection, leaders: Leaders, cursors: Mapping[TopicPartition, PartitionCursor], producer_ids: Collection[int]
) -> set[TopicPartition]:
    """Stop the cursors of such partitions. `producer_ids`: what InitProducerId returned for all lanes. RequestNotSent or RequestLost.

    Returns the partitions whose leader did not answer: ask for them again before appending to them. Brokers before 2.8 show no open
    transactions, nor does any broker without Read on the topic; such partitions are not stopped.
    """
    wanted = [TopicPartition(*key) for key, cursor in cursors.items() if cursor.failure is None]
    told = await open_of(target, leaders, wanted, producer_ids)
    for key, found in told.items():
        if found is None:
            continue
        task = cursors[key].task
        where = f"cluster {target.alias}, {key.topic}-{key.partition}"
        what = f"a transaction of this flow is open from offset {found.start_offset} on, and its coordinator has forgotten it"
        whose = f"producer id {found.producer_id}, epoch {found.epoch}"
        remedy = "end it as ferry status says, then let ferry verify tell whether records are missing, which ferry seed has copied again"
        problem = f"{where}: {what} ({whose}): {remedy}"
        cursors[key].fail(TransactionHangs(task.topic, task.partition, problem))
    return {key for key in wanted if key not in told}
