"""A partition that an open transaction holds back: where, since when, whose it is, and what to do about it (pure)."""

from dataclasses import dataclass
from typing import Any

from ferry.clusters.net.partitions import TopicPartition
from ferry.errors import span


@dataclass(frozen=True)
class OpenTransaction:
    """An open transaction in one partition."""

    producer_id: int
    epoch: int
    start_offset: int
    last_timestamp: int  # of the producer's last batch there, as the producer wrote it; ms, -1 unknown
    transactional_id: str | None = None  # from the coordinator, as what follows; None: none that answers this user knows the producer id
    state: str | None = None
    started: int = -1  # in ms, as `timeout`; -1 if the coordinator does not have the transaction open too
    timeout: int = -1

    @property
    def forgotten(self) -> bool:
        """Whether its coordinator is known but will not write a marker into this partition any more."""
        return self.state is not None and self.started < 0


@dataclass(frozen=True)
class LastStableLag:
    """One partition of a cluster whose last stable offset `stable_end` is below its high watermark."""

    topic: str  # of the source, as `partition`
    partition: int
    cluster: str
    servers: str
    held: TopicPartition  # the partition that lags: on the target the remote one, or one of Ferry's own topics
    stable_end: int
    high_watermark: int
    age_ms: int | None = None  # of the transaction; None: not known, but younger than the threshold
    transaction: OpenTransaction | None = None  # the first
    others: int = 0  # transactions that are open after the first one
    hidden: str = ""  # why `transaction` is not known
    overdue: bool = False

    @property
    def waiting(self) -> int:
        """Offsets that wait for the transaction, from its first on."""
        return self.high_watermark - self.stable_end

    @property
    def what(self) -> str:
        """One line: where, for how long, and whose transaction."""
        where = f"cluster {self.cluster}, {self.held.topic}-{self.held.partition}"
        begun = "" if self.age_ms is None else f" for {span(self.age_ms // 1000)} by this machine's clock"
        extent = f"from offset {self.stable_end} on (the log ends at {self.high_watermark})"
        who, found = self.hidden, self.transaction
        if found is not None:
            name = "transactional id unknown" if found.transactional_id is None else f"transactional id {found.transactional_id}"
            more = f", and {self.others} more after it" if self.others else ""
            who = f"producer id {found.producer_id}, epoch {found.epoch}, {name}{more}"
        return f"{where}: a transaction is open{begun}, {extent}: {who}"

    @property
    def remedy(self) -> str:
        found = self.transaction
        if found is not None and found.state is not None and not found.forgotten:
            until = f"wait until the cluster aborts the transaction, {span(found.timeout // 1000)} after its start"
            whose = f"the application with transactional id {found.transactional_id}"
            return f"{until}; or, if {whose} hangs or is gone, start it again, which aborts it at once; then run again"
        command = f"kafka-transactions.sh --bootstrap-server {self.servers.replace(' ', '')} abort --topic {self.held.topic}"
        command += f" --partition {self.held.partition} --start-offset {self.stable_end}"
        known = "its coordinator has forgotten it" if found is not None and found.forgotten else "if no application owns it any more"
        return f"{known}: {command} (and the same for every other partition of that producer: kafka-transactions.sh find-hanging)"

    def document(self) -> dict[str, Any]:
        found = self.transaction
        return {
            "topic": self.topic,
            "partition": self.partition,
            "cluster": self.cluster,
            "held_topic": self.held.topic,
            "stable_end": self.stable_end,
            "high_watermark": self.high_watermark,
            "age_ms": self.age_ms,
            "overdue": self.overdue,
            "producer_id": found.producer_id if found else None,
            "producer_epoch": found.epoch if found else None,
            "transactional_id": found.transactional_id if found else None,
            "state": found.state if found else None,
            "others": self.others,
            "hidden": self.hidden,
            "remedy": self.remedy,
        }
