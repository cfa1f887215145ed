"""Remote partitions in which an ended transaction of a lane of the flow is still open.

Once an init has succeeded, the coordinator calls every transaction of its transactional id ended. A broker that was killed around EndTxn
may still have left some partitions without a marker, while others, that of the position among them, may have theirs
(docs/decisions/007-hanging-transactions.md). The next marker of the same producer would end the old records together with new ones, in
whichever way: lost behind a position that counts them, or doubled before one that does not. So such a partition takes no further record.
The producers of all lanes count: where runs have different numbers of lanes, the partition was another lane's before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.clusters.connections import ClusterConnection
from ferry.clusters.leaders import Leaders
from ferry.clusters.open_transactions import open_of
from ferry.clusters.partitions import TopicPartition
from ferry.copying.appender import PartitionKey
from ferry.copying.cursor import PartitionCursor
from ferry.errors import TransactionHangs


async def stop_unmarked(
    target: ClusterConnection, leaders: Leaders, cursors: Mapping[PartitionKey, PartitionCursor], producer_ids: Collection[int]
) -> set[PartitionKey]:
    """Stop the cursors of such partitions: after inits that gave `producer_ids`. RequestNotSent or RequestLost.

    Only what the leaders show is judged: brokers before 2.8 do not tell, nor do any without Read on the topic. Returned are the partitions
    whose leader did not tell now: they must be asked for again before anything is appended to them.
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
