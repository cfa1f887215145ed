"""What the reads of a made-up flow would find, made by the product's own functions, so that its shape is the product's at any time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from ferry.clusters.logs.held_back import LastStableLag, OpenTransaction
from ferry.clusters.logs.internal_reader import InternalRecord
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import load_config
from ferry.config.in_force import InForce
from ferry.copying.committed import Committed
from ferry.copying.partition_plan import PartitionFacts
from ferry.ledger.counters import ONE_TRANSACTION, Counters
from ferry.ledger.receipts import REFUSED, Receipt, ReceiptKind, encode_receipt
from ferry.ledger.run_report import LossReport, PartitionFailure, Skipped
from ferry.ledger.run_summary import RunLag, RunSummary, encode_run_part
from ferry.ledger.runs_topic import RunOpened, encode_run_record, follows
from ferry.ledger.sync_outcome import Change, SyncOutcome
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.missing import COMPACTED
from ferry.monitoring.runs_reading import recent_runs
from ferry.page.coverage_timeline import MissingRange, gaps, timeline
from ferry.page.flow_reading import drift_of
from ferry.page.groups_reading import _row
from ferry.page.overview import Overview
from ferry.page.progress_reading import progress_of
from ferry.recovery.moving import GroupMove, PartitionMove
from ferry.recovery.not_copied import NotCopied
from ferry.recovery.options import RecoveryOptions
from ferry.recovery.recovery_report import RecoveryPlan
from ferry.syncs.group_decision import Placement
from ferry.syncs.group_explanation import ExplainedPartition, GroupExplanation, GroupSide
from ferry.verify.comparison import Difference, DifferenceKind, NotCovered
from ferry.verify.results_topic import report_records
from ferry.verify.verify_report import VerifyReport

TOPICS = ("audit.log", "clicks", "inventory", "invoices", "orders", "payments", "shipments", "users")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter-two"
HOSTILE = "<img src=x onerror=window.hacked='1'>"
LONGEST = f"{'a' * 120}.{'b' * 128}"
END = 9_000
MISSING_END = {0: 2_500, 1: 1_200}
HOUR_MS, DAY_SECONDS = 3_600_000, 86_400
# Records are a minute apart or so: the oldest of END is some six days old.
MS_A_RECORD = 60_000


def began_ms() -> int:
    """When the first record of every partition was written."""
    return round(time.time() * 1000) - END * MS_A_RECORD


def partition_row(topic: str, partition: int, lag: int = 0, *, alias: str = "A", seconds_a_record: float = 1.0) -> PartitionStatus:
    """One partition that lags by `lag` records of 400 bytes."""
    return PartitionStatus(
        topic=topic,
        partition=partition,
        remote_topic=f"{alias}.{topic}",
        position=END - lag,
        end=END,
        lag_records=lag,
        lag_bytes=lag * 400,
        lag_seconds=lag * seconds_a_record,
        headroom_seconds=7.0 * DAY_SECONDS - lag * seconds_a_record if lag else None,
        open_transaction_at=None,
        log_start=0,
    )


def overview(topics: Iterable[str] = TOPICS, lag: int = 0, partitions: int = 3, **more: Any) -> Overview:
    """Every topic lags the more, the later it is named."""
    rows = [partition_row(topic, number, lag * place) for place, topic in enumerate(topics) for number in range(partitions)]
    return overview_of(rows, **more)


def overview_of(rows: Iterable[PartitionStatus], **more: Any) -> Overview:
    """`more`: what else is known of its health."""
    return Overview(FlowHealth("A->B", tuple(rows), **more))


def with_losses(seen: Overview, topic: str = "payments", reason: str = "the source dropped them before they were copied") -> Overview:
    """Two ranges lost, one of them acknowledged."""
    lost = LossReport(topic, 0, 3_000, 3_120, reason)
    found = [
        {**asdict(lost), "run_id": "scheduled__1", "acknowledged": False},
        {**asdict(LossReport(topic, 2, 40, 41, f"{REFUSED}: RecordTooLarge", "skipped")), "run_id": "scheduled__2", "acknowledged": True},
    ]
    return replace(seen, health=replace(seen.health, losses=(lost,)), losses=tuple(found), losses_total=2, losses_by_topic={topic: 1})


def with_troubles(seen: Overview) -> Overview:
    """A partition that is stopped, and a transaction that hangs."""
    open_since = LastStableLag(
        "invoices",
        1,
        "A",
        "a.example:9092",
        TopicPartition("invoices", 1),
        8_200,
        END,
        age_ms=3 * HOUR_MS,
        transaction=OpenTransaction(4711, 3, 8_200, began_ms(), "billing-7", "Ongoing", began_ms(), 900_000),
        overdue=True,
    )
    stopped = PartitionFailure("orders", 2, "SourceDataLost", "the source dropped offsets 100 to 140, which were not copied")
    rows = tuple(
        replace(row, open_transaction_at=8_200) if row.topic == "invoices" and row.partition == 1 else row for row in seen.health.partitions
    )
    return replace(seen, health=replace(seen.health, partitions=rows, stopped=(stopped,), last_stable_lags=(open_since,)))


def iso(ago_seconds: float) -> str:
    """A moment so long ago."""
    return datetime.fromtimestamp(time.time() - ago_seconds, UTC).isoformat(timespec="milliseconds")


def run_summary(number: int, state: str = "done", *, interval: float = 3_600.0, **more: Any) -> RunSummary:
    """The run of `number` intervals ago."""
    records = 0 if state == "nothing new" else 14_000 + 3_000 * (number % 7)
    ago = number * interval + 120.0
    fields: dict[str, Any] = {
        "records": records,
        "bytes": records * 400,
        "seconds": 9.0 + number % 5,
        "cpu_seconds": 4.0,
        "topics": tuple((topic, records * place // 36, records * place // 36 * 400) for place, topic in enumerate(TOPICS, 1))
        if records
        else (),
        "topics_total": len(TOPICS) if records else 0,
        "syncs": {"groups": {"changes": 3, "skipped": 1, "failed": 0, "left_out": ""}},
        "delay_seconds": 1_500.0 + 200 * (number % 5) if records else None,
        "lag": RunLag(records // 9, 30.0 + 15 * (number % 4), 6.0 * DAY_SECONDS),
    }
    return RunSummary(
        run_id=f"scheduled__{iso(ago)[:16]}", started=iso(ago), finished=iso(ago - 15.0), bound="latest", state=state, **(fields | more)
    )


def runs(summaries: Iterable[RunSummary], verifies: Iterable[VerifyReport] = (), opened: Iterable[RunOpened] = ()) -> dict[str, Any]:
    """What the runs topic would tell. `opened`: runs that have not ended."""
    now = round(time.time() * 1000)
    records = [InternalRecord(0, 0, now, *encode_run_part(summary.run_id, summary)) for summary in summaries]
    records += [
        InternalRecord(0, 0, now, b"verify:" + report.run_id.encode(), value) for report in verifies for value in report_records(report)
    ]
    records += [InternalRecord(0, 0, now, *encode_run_record(run)) for run in opened]
    return recent_runs(records, "cluster B: topic runs", time.time()).document


def progress(run: RunOpened, commits: Iterable[Receipt] = (), *, over: bool = False) -> dict[str, Any]:
    """How far it is, if these receipts came two seconds apart, the last one just now."""
    commits, now = list(commits), time.time()
    moments = [round((now - 2.0 * number) * 1000) for number in reversed(range(len(commits)))]
    records = [
        InternalRecord(0, number, at, *encode_receipt(replace(entry, run_id=run.run_id)))
        for number, (at, entry) in enumerate(zip(moments, commits, strict=True))
    ]
    committed = Committed(follows=follows(run, now))
    found: dict[str, Any] = json.loads(
        json.dumps(progress_of(run, records, "cluster B: topic ledger", now, over=over, committed=committed))
    )
    return found


def verify(run_id: str, differences: int = 0, topic: str = "orders") -> VerifyReport:
    """A verify that found so many records altered."""
    found = [
        Difference(topic, 0, f"A.{topic}", 100 + number, 90 + number, DifferenceKind.ALTERED, "the value differs")
        for number in range(differences)
    ]
    uncovered = NotCovered("users", 1, 0, 40, "the remote topic is compacted")
    counts = {"altered": differences} if differences else {}
    return VerifyReport(
        "A->B", run_id, iso(900), iso(880), 24, 0, 210_000, 84_000_000, 84_000_000, 19.5, 30.0, counts, (), tuple(found), (uncovered,)
    )


def receipt(topic: str, partition: int, start: int, end: int, kind: ReceiptKind = ReceiptKind.COPIED, reason: str = "") -> Receipt:
    """A settled range."""
    begun, none = began_ms(), kind in {ReceiptKind.LOSS, ReceiptKind.SKIPPED}
    return Receipt(
        kind,
        topic,
        partition,
        "source-id",
        f"A.{topic}",
        "remote-id",
        start,
        end,
        counters=ONE_TRANSACTION if none else Counters(end - start, 400 * (end - start), 1),
        min_timestamp=begun + start * MS_A_RECORD,
        max_timestamp=begun + (end - 1) * MS_A_RECORD,
        run_id="scheduled__1",
        reason=reason,
    )


def _receipts(topic: str, closed: bool) -> list[Receipt]:
    if topic in {"orders", "users"}:  # included late: half of it was there before
        found = [receipt(topic, number, MISSING_END.get(number, 0), END) for number in range(3)]
        late = [receipt(topic, number, 0, end, ReceiptKind.BACKFILLED) for number, end in MISSING_END.items()]
        return found + (late if closed else [])
    if topic == "clicks":
        return [receipt(topic, number, *span) for number in range(3) for span in ((0, 4_000, ReceiptKind.BACKFILLED), (4_000, END))]
    if topic in {"payments", HOSTILE}:
        why = "the source dropped them before they were copied" if topic == "payments" else HOSTILE
        return [
            receipt(topic, 0, 0, 3_000),
            receipt(topic, 0, 3_000, 3_120, ReceiptKind.LOSS, why),
            receipt(topic, 0, 3_120, END),
            receipt(topic, 1, 0, 2_000, ReceiptKind.FOREIGN, "copied by MirrorMaker 2"),
            receipt(topic, 1, 2_000, END),
            receipt(topic, 2, 0, 40),
            receipt(topic, 2, 40, 41, ReceiptKind.SKIPPED, f"{REFUSED}: RecordTooLarge"),
            receipt(topic, 2, 41, END),
        ]
    return [receipt(topic, number, 0, END) for number in range(3)]


def coverage(topic: str, *, closed: bool = False) -> dict[str, Any]:
    """`orders` misses its beginning until that is `closed`; `users` too, where a backfill is refused; `payments` has every kind."""
    receipts = _receipts(topic, closed)
    places = [
        PartitionFacts(topic, number, UUID(int=1), f"A.{topic}", UUID(int=2), 3, END, 0, END + 40, END + 40, END) for number in range(3)
    ]
    begun, obstacle = began_ms(), COMPACTED if topic == "users" else ""
    missing = [
        MissingRange(place.partition, start, end, *((None, None) if obstacle else (begun, begun + end * MS_A_RECORD)), obstacle)
        for place in places
        for start, end in gaps(place, [entry for entry in receipts if entry.partition == place.partition])
    ]
    return {
        "remote_topic": f"A.{topic}",
        "partitions": timeline(places, receipts, missing),
        "missing": [asdict(gap) for gap in missing],
        "note": "",
    }


GROUPS = ("billing", "fraud-detection", "reports", *(f"service-{number:02}" for number in range(60)))


def groups(names: Sequence[str] = GROUPS, reason: str = "it has 2 members on B") -> dict[str, Any]:
    """The first is up to date, the second waits, the third is kept from being written."""
    rows = [{**_row(name, {}, {}, [], state_target="Empty"), "state_source": "Stable", "partitions": 3, "exact": 3} for name in names]
    words = (("up to date", [], 0), ("write", [], 120), ("nothing", [reason], 40_000))
    for row, (decision, reasons, lag) in zip(rows, words, strict=False):
        row.update(decision=decision, reasons=reasons, lag_source=lag)
    for row in rows[3:]:
        row["decision"] = "up to date"
    return {"groups": rows, "off": ""}


def group(name: str, reason: str = "it has 2 members on B") -> dict[str, Any]:
    """One group, partition by partition."""
    cells = [
        ExplainedPartition(
            "orders", number, 8_000, 1_000, "A.orders", 5_500, number != 1, 5_400, 1_100, "write", "" if number != 1 else reason
        )
        for number in range(3)
    ]
    sides = GroupSide("A", "Stable", "consumer", ("billing-1 (/10.0.0.7)",)), GroupSide("B", "Empty", "consumer")
    return asdict(GroupExplanation("A->B", name, *sides, (), tuple(cells)))


def drift(*, differs: bool = True) -> dict[str, Any]:
    """Configs that differ, a topic that is to grow; ACLs are off."""
    changes = {
        "topics": (Change("topic A.orders", "grow", "partitions: 3 -> 6", "orders has 6 partitions on A"),),
        "configs": (
            Change("topic A.orders", "set", "retention.ms: 604800000 -> 259200000", "A has 259200000"),
            Change("topic A.users", "delete", "cleanup.policy: compact -> (default)", "A has the default"),
        ),
    }
    left = (Skipped("topic A.audit.log min.insync.replicas", "config.properties.exclude"),)
    off = SyncOutcome(sync="acls", left_out="sync.topic.acls.enabled is false", dry_run=True)
    outcomes: Mapping[str, SyncOutcome] = {
        "topics": SyncOutcome(changes["topics"] if differs else (), sync="topics", dry_run=True),
        "configs": SyncOutcome(changes["configs"] if differs else (), left, sync="configs", dry_run=True),
        "schemas": SyncOutcome(sync="schemas", left_out="A.schema.registry.url is not set", dry_run=True),
        "acls": off,
    }
    return drift_of(outcomes)


def in_force_of(flow: str) -> tuple[InForce, ...]:
    """The properties of a file with every kind of value."""
    source, target = flow.split("->")
    lines = (
        f"clusters = {source}, {target}",
        f"{source}.bootstrap.servers = a.example:9093",
        f"{source}.security.protocol = SASL_SSL",
        f"{source}.sasl.mechanism = SCRAM-SHA-512",
        f"{source}.sasl.jaas.config = {SCRAM} required username=ferry password={SECRET};",
        "config.providers = env",
        "config.providers.env.class = EnvVarConfigProvider",
        f"{target}.bootstrap.servers = b.example:9092",
        f"{target}.ssl.truststore.password = ${{env:TRUST}}",
        "topics = orders, payments.*",
        f"{flow}.enabled = true",
        f"{flow}.ferry.schedule = 0 * * * *",
    )
    with TemporaryDirectory() as directory:
        path = Path(directory) / "mm2.properties"
        path.write_text("\n".join(lines), encoding="latin-1")
        return load_config(path).in_force[flow]


def recovery_plan(groups: int = 1) -> RecoveryPlan:
    """What a failover would do with groups, each with a partition that is not exact and one that stays, and with one that is in use."""
    moves = tuple(
        PartitionMove(
            "orders",
            number,
            "A.orders",
            8_000,
            5_400,
            5_500,
            Placement.WRITE,
            not number,
            40 * number,
            "records are read again" if number else "",
        )
        for number in range(2)
    )
    moves += (PartitionMove("orders", 2, "A.orders", 8_000, 5_600, 5_500, Placement.AHEAD, True, 0, "it is at 5600, translated 5500"),)
    missing = (NotCopied("orders", 1, "A.orders", 9_000, 9_040, 40),)
    found = (*(GroupMove(f"billing-{number}", "", moves, 0) for number in range(groups)), GroupMove("used", "it has 1 member on B", ()))
    return RecoveryPlan(RecoveryOptions("failover", "manual__over"), "A->B", moves=found, missing=missing)
