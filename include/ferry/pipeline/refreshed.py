"""What a run put into each remote topic: the facts that downstream jobs need to process just that.

It is made from the run's receipts. So it also holds for a run that was killed and tried again, or in which other topics failed. A
downstream range `[start, end)` contains all records that the run appended to a partition there. It also contains control records. If others
write to the remote topic too (both directions under one name), it may contain their records. It never contains records of other runs of the
flow: if one came between two tries, the partition has a range on either side of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from ferry.clusters.net.shared_connection import Asked
from ferry.config import Flow
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow, open_flow
from ferry.ledger.receipts import COPIES, Receipt, decode_receipt, run_of
from ferry.ledger.runs_topic import read_run_records

FACTS_VERSION = 1
# Airflow keeps events in its database. So an event names this many ranges at most, and says how many it leaves out; its totals count all.
PARTITIONS_TOLD = 256


class RefreshedPartition(NamedTuple):
    """One range of a partition, on both sides, end exclusive; bytes as stored."""

    partition: int
    upstream_start: int
    upstream_end: int
    downstream_start: int
    downstream_end: int
    records: int
    bytes: int
    read: int  # the number of source records from which a message handler made `records`; without a handler both are equal


@dataclass(frozen=True)
class RefreshedTopic:
    """One remote topic that a run appended records to. Timestamps in ms since 1970, -1: no record has one."""

    topic: str
    remote_topic: str
    partitions: tuple[RefreshedPartition, ...]
    min_timestamp: int
    max_timestamp: int

    @property
    def records(self) -> int:
        return sum(entry.records for entry in self.partitions)

    def facts(self, flow: str, run_id: str) -> dict[str, Any]:
        """A JSON object. `partitions` are lists `[partition, upstream start, upstream end, downstream start, downstream end, records]`."""
        told = self.partitions[:PARTITIONS_TOLD]
        return {
            "version": FACTS_VERSION,
            "flow": flow,
            "run_id": run_id,
            "topic": self.topic,
            "remote_topic": self.remote_topic,
            "records": self.records,
            "bytes": sum(entry.bytes for entry in self.partitions),
            "min_timestamp": self.min_timestamp,
            "max_timestamp": self.max_timestamp,
            "partitions": [
                [entry.partition, entry.upstream_start, entry.upstream_end, entry.downstream_start, entry.downstream_end, entry.records]
                for entry in told
            ],
            "partitions_left_out": len(self.partitions) - len(told),
        }


def read_refreshed(flow: Flow, run_id: str) -> tuple[RefreshedTopic, ...]:
    """The topics to which the run appended records so far, over all its tries; none for a run that never began."""
    with open_flow(flow) as opened:
        run = read_run_records(opened, run_id).opened
        return () if run is None else refreshed_topics(ask_receipts_since(opened, run.ledger_ends).answer(), run_id)


def ask_receipts_since(opened: OpenFlow, since: Mapping[int, int]) -> Asked[list[Receipt]]:
    """The receipts of all runs, from the ledger's offsets `since` (as a run was opened) on."""
    topic = opened.flow.ledger_topic
    where, read = place_of(opened.flow.target, topic), opened.target.reader().read(topic, since)

    def newest() -> list[Receipt]:
        # Receipts of runs that follow grow in place. A long run may merge its own old receipts at its end: then those count that it wrote.
        found = {(record.key, run_of(record.value)): record.value for record in read if record.value is not None}
        return [decode_receipt(key, value, where) for (key, _), value in found.items()]

    return Asked(newest)


def refreshed_topics(receipts: Iterable[Receipt], run_id: str) -> tuple[RefreshedTopic, ...]:
    """Topics with records of this run, by remote name; `receipts` are those of all runs since it was opened (pure)."""
    copies = [receipt for receipt in receipts if receipt.kind in COPIES and receipt.counters.records]
    copies.sort(key=lambda receipt: (receipt.remote_topic, receipt.partition, _first_place(receipt)))
    named = ((name, list(found)) for name, found in groupby(copies, lambda receipt: receipt.remote_topic))
    return tuple(_topic(name, found, run_id) for name, found in named if any(receipt.run_id == run_id for receipt in found))


def _topic(name: str, receipts: Sequence[Receipt], run_id: str) -> RefreshedTopic:
    ranges = groupby(receipts, lambda receipt: (receipt.partition, receipt.run_id))
    partitions = tuple(_partition(number, list(found)) for (number, run), found in ranges if run == run_id)
    own = [receipt for receipt in receipts if receipt.run_id == run_id]
    earliest = min((receipt.min_timestamp for receipt in own if receipt.min_timestamp >= 0), default=-1)
    return RefreshedTopic(own[0].topic, name, partitions, earliest, max(receipt.max_timestamp for receipt in own))


def _first_place(receipt: Receipt) -> int:
    """The first downstream offset that the receipt names; its downstream end if it names no other."""
    return min((*(run[1] for run in receipt.runs[:1]), *(span[0] for span in receipt.written)), default=receipt.downstream_end)


def _partition(number: int, receipts: Sequence[Receipt]) -> RefreshedPartition:
    counters = [receipt.counters for receipt in receipts]
    return RefreshedPartition(
        number,
        min(receipt.upstream_start for receipt in receipts),
        max(receipt.upstream_end for receipt in receipts),
        min(_first_place(receipt) for receipt in receipts),
        max(receipt.downstream_end for receipt in receipts),
        sum(found.records for found in counters),
        sum(found.bytes for found in counters),
        sum(found.records + found.dropped - found.added for found in counters),
    )
