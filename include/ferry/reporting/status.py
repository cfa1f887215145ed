"""How far a flow is: lag, retention headroom, losses, stuck source transactions. Reads only, waits for nobody."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from ferry.clusters.admin import ClusterAdmin
from ferry.copying.held_back import HeldBack, held_back
from ferry.copying.plan import PartitionFacts
from ferry.copying.receipts import Receipt
from ferry.copying.request import RunRequest
from ferry.copying.survey import read_receipts, survey
from ferry.recovery.losses import open_losses
from ferry.reporting.assemble import loss_report
from ferry.reporting.run_report import LossReport
from ferry.wire.ranges import size as held
from ferry.wire.ranges import within

if TYPE_CHECKING:
    from ferry.clusters.describe import ConfigValue
    from ferry.config import Flow

STATUS_VERSION = 1
# Ages of the first uncopied records are a courtesy: a slow broker must not hang the command.
READ_SECONDS = 15.0


@dataclass(frozen=True)
class PartitionStatus:
    """One source partition. Lags: records (offsets, so control records count too), bytes (by the average of what was copied, -1 unknown),
    seconds (age of the first uncopied record, -1 unknown). `headroom_seconds`: until the source drops it by time (None: never).
    `open_transaction_at`: the source's last stable offset when an open transaction holds it back (None: none does)."""

    topic: str
    partition: int
    remote_topic: str
    position: int
    end: int
    lag_records: int
    lag_bytes: int
    lag_seconds: float
    headroom_seconds: float | None
    open_transaction_at: int | None


@dataclass(frozen=True)
class FlowStatus:
    """A whole flow."""

    flow: str
    partitions: tuple[PartitionStatus, ...]
    losses: tuple[LossReport, ...]
    held_back: tuple[HeldBack, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        fields = asdict(self)
        del fields["held_back"]
        totals = {
            "lag_records": sum(entry.lag_records for entry in self.partitions),
            "lag_bytes": sum(max(0, entry.lag_bytes) for entry in self.partitions),
            "lag_seconds": max((entry.lag_seconds for entry in self.partitions), default=0.0),
        }
        return {"version": STATUS_VERSION, **fields, "open_transactions": [entry.document() for entry in self.held_back], "totals": totals}


def flow_status(flow: Flow) -> FlowStatus:
    """Ask both clusters."""
    with ClusterAdmin(flow.source) as source, ClusterAdmin(flow.target) as target:
        seen = survey(flow, RunRequest(flow.name, "status"), source, target, settled=False)
        behind = held_back(flow, seen, source, target)
        configs = source.topic_configs({facts.topic for facts in seen.facts})
    receipts = read_receipts(flow)
    ages = _ages(flow, [facts for facts in seen.facts if _position(facts) < facts.stable_end])
    sizes = average_sizes(receipts)
    open_at = {(entry.topic, entry.partition): entry.stable_end for entry in behind if entry.cluster == flow.source.alias}
    partitions = tuple(
        partition_status(
            facts,
            open_at=open_at.get((facts.topic, facts.partition)),
            average_size=sizes.get((facts.topic, facts.partition)),
            age=ages.get((facts.topic, facts.partition), 0.0),
            retention=_retention(configs.get(facts.topic, {})),
        )
        for facts in seen.facts
    )
    return FlowStatus(flow.name, partitions, tuple(loss_report(loss) for loss in open_losses(flow)), behind)


def partition_status(
    facts: PartitionFacts, *, open_at: int | None, average_size: float | None, age: float, retention: float | None
) -> PartitionStatus:
    """One partition's status (pure). `age` of the first uncopied record and `retention` in seconds."""
    position = _position(facts)
    first = max(position, facts.log_start)
    lag = max(0, facts.stable_end - first - held(within(facts.guard.excluded, first, facts.stable_end)))
    size = 0 if not lag else -1 if average_size is None else round(lag * average_size)
    headroom = None if retention is None or not lag or age < 0 else retention - age
    return PartitionStatus(
        facts.topic, facts.partition, facts.remote_topic, position, facts.stable_end, lag, size, age if lag else 0.0, headroom, open_at
    )


def average_sizes(receipts: Iterable[Receipt]) -> dict[tuple[str, int], float]:
    """Bytes per record of what was copied, by source partition."""
    totals: dict[tuple[str, int], tuple[int, int]] = {}
    for receipt in receipts:
        records, size = totals.get((receipt.topic, receipt.partition), (0, 0))
        totals[receipt.topic, receipt.partition] = (records + receipt.records, size + receipt.bytes)
    return {key: size / records for key, (records, size) in totals.items() if records}


def _position(facts: PartitionFacts) -> int:
    return facts.head.position if facts.head else facts.committed if facts.committed is not None else facts.start


def _retention(config: Mapping[str, ConfigValue]) -> float | None:
    entry, policy = config.get("retention.ms"), config.get("cleanup.policy")
    if entry is None or entry.value is None or int(entry.value) < 0 or (policy is not None and policy.value == "compact"):
        return None
    return int(entry.value) / 1000


def _ages(flow: Flow, lagging: Iterable[PartitionFacts]) -> dict[tuple[str, int], float]:
    """Age in seconds of the first uncopied record of each partition; -1 when it could not be read in time."""
    from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

    wanted = {(facts.topic, facts.partition): max(_position(facts), facts.log_start) for facts in lagging}
    ages = dict.fromkeys(wanted, -1.0)
    if not wanted:
        return {}
    consumer = Consumer(
        {
            **flow.source.librdkafka(ClientRole.CONSUMER),
            "group.id": "ferry-status",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in wanted.items()])
        deadline = time.monotonic() + READ_SECONDS
        while wanted and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                key = (message.topic(), message.partition())
                if wanted.pop(key, None) is not None:
                    ages[key] = max(0.0, time.time() - message.timestamp()[1] / 1000)
                    consumer.pause([TopicPartition(*key)])
    except KafkaException:
        return ages
    finally:
        consumer.close()
    return ages
