"""Clean copies of awkward sources are equal, and what cannot be compared is named."""

from __future__ import annotations

import hashlib
import itertools
import json
import secrets
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.verify.conftest import Pair, Row, write
from tools.kafka import SandboxCluster

from ferry.errors import ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.verify import range_runner, reasons
from ferry.verify.comparison import RangeResult, VerifyRange
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import DigestKind
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.brokers

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
START = 1_700_000_000_000


def rows(count: int, first: int = 0) -> list[Row]:
    """Keys that come again, empty values, headers that are doubled or null."""
    return [
        (
            None if number % 10 == 9 else f"{number}".encode() * (1 + number % 90),
            f"k{number % 50}".encode(),
            [("h", b"1"), ("h", None)] if number % 3 else [],
            START + 1_000 * number,
        )
        for number in range(first, first + count)
    ]


def fill(cluster: SandboxCluster, topic: str, count: int, *, first: int = 0, partition: int = 0, **settings: object) -> None:
    write(cluster, topic, rows(count, first), [partition], **settings)


def transactions(cluster: SandboxCluster, topic: str) -> None:
    """Committed and aborted ones; a commit returns before its markers are written."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    for number in range(8):
        producer.begin_transaction()
        for index in range(5):
            producer.produce(topic, f"{number}-{index}".encode(), partition=0)
        producer.flush(30)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)


def by_reason(report: VerifyReport) -> dict[str, list[tuple[str, int, int]]]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    for entry in report.not_covered:
        found.setdefault(entry.reason, []).append((entry.topic, entry.start, entry.end))
    return found


def delete_below(cluster: SandboxCluster, topic: str, offset: int) -> None:
    client = AdminClient(cluster.client_settings())
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def varint(value: int) -> bytes:
    """Zigzag, as lengths stand in a record."""
    left, found = value * 2 if value >= 0 else -value * 2 - 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def digest_by_hand(cluster: SandboxCluster, topic: str, span: tuple[int, int]) -> str:
    """As docs/verify.md defines it, over what a consumer is given."""
    found = hashlib.sha256()
    consumer = Consumer({**cluster.client_settings(), "group.id": "nobody", "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, span[0])])
        while (record := consumer.poll(20)) is not None and record.error() is None:
            if record.offset() < span[1]:
                headers = record.headers() or []
                rest = b"".join(varint(len(name)) + name.encode() + field(value) for name, value in headers)
                content = field(record.key()) + field(record.value()) + varint(len(headers)) + rest
                found.update(b"R" + struct.pack(">qi", record.timestamp()[1], len(content)) + content)
    finally:
        consumer.close()
    assert record is not None
    assert record.error().code() == KafkaError._PARTITION_EOF
    return found.hexdigest()


@pytest.mark.long
def test_awkward_sources_are_equal(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow of many topics: all codecs in large and small batches, transactions, times of the broker, an expired start, compaction."""
    prefix = f"v{secrets.token_hex(4)}"
    shapes = {f"{codec}-{size}": (codec, size) for codec, size in itertools.product(CODECS, (1, 20, 10_000))}
    for name, (codec, size) in shapes.items():
        topic = pair.topic(name=f"{prefix}-{name}")
        fill(pair.source, topic, 300, **{"compression.type": codec, "batch.num.messages": size})
    stamped = pair.topic(name=f"{prefix}-stamped", config={"message.timestamp.type": "LogAppendTime"})
    fill(pair.source, stamped, 300, **{"compression.type": "lz4"})
    mixed = pair.topic(name=f"{prefix}-mixed")
    fill(pair.source, mixed, 100)
    transactions(pair.source, mixed)
    fill(pair.source, mixed, 100, first=100)
    expired = pair.topic(name=f"{prefix}-expired")
    fill(pair.source, expired, 200)
    delete_below(pair.source, expired, 60)
    eager = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100", "max.compaction.lag.ms": "200"}
    compacted = pair.topic(name=f"{prefix}-compacted", config=eager)
    fill(pair.source, compacted, 200, **{"batch.num.messages": 10})
    flow = pair.flow(f"{prefix}.*")
    pair.run(flow)
    fill(pair.source, compacted, 200, first=200)
    fill(pair.source, expired, 100, first=200)
    delete_below(pair.source, expired, 260)
    pair.run(flow, expected=None)

    report, again, by_record = pair.prove(flow), pair.prove(flow), pair.prove(flow, digest=DigestKind.RECORDS)
    assert report.differences == ()
    assert (report.equal, report.exit_code) == (True, ExitCode.DONE)
    compaction = {reason for reason in by_reason(report) if reason.startswith("compaction")}
    assert {entry[0] for reason in compaction for entry in by_reason(report)[reason]} <= {compacted}
    others = tuple(f"{prefix}-{name}" for name in (*shapes, "stamped", "mixed", "expired"))
    assert pair.prove(flow, topics=others).records == 300 * len(shapes) + 300 + 220 + 40
    told = {reason.split(";")[0]: entries for reason, entries in by_reason(report).items() if reason not in compaction}
    lost = "lost: deleted at the source before it was copied: its log starts at 260"
    assert told == {reasons.EXPIRED_SOURCE: [(expired, 60, 200)], lost: [(expired, 200, 260)]}
    assert report.bytes_as_stored > 0
    settled = [entry for entry in report.verified if entry.topic != compacted]
    assert {entry.topic for entry in settled} == set(others)
    assert [entry for entry in again.verified if entry.topic != compacted] == settled
    for entry in by_record.verified:
        if entry.topic != compacted:
            sides = (pair.source, entry.topic, entry.upstream), (pair.target, entry.remote_topic, entry.downstream)
            assert [entry.source_digest, entry.target_digest] == [digest_by_hand(*side) for side in sides], entry.topic
            assert entry.source_digest == entry.target_digest
            assert (entry.upstream_parts, entry.downstream_parts) == (1, 1)

    # Both logs lose what was copied: no longer covered, and no difference.
    delete_below(pair.source, f"{prefix}-none-20", 100)
    delete_below(pair.target, f"{flow.source.alias}.{prefix}-lz4-20", 120)
    fill(pair.source, mixed, 7, first=200)
    later = pair.prove(flow, topics=(f"{prefix}-none-20", f"{prefix}-lz4-20", mixed))
    assert later.equal
    assert by_reason(later)[reasons.EXPIRED_SOURCE] == [(f"{prefix}-none-20", 0, 100)]
    assert [(topic, start) for topic, start, _ in by_reason(later)[reasons.EXPIRED_TARGET]] == [(f"{prefix}-lz4-20", 0)]
    assert [(topic, end - start) for topic, start, end in by_reason(later)[reasons.NOT_COPIED]] == [(mixed, 7)]
    assert later.records == 200 + (300 - 120) + 220

    # They lose more while it is verified.
    moving = f"{prefix}-gzip-20"
    compare = range_runner._RangeVerifier._compare

    async def late(self: range_runner._RangeVerifier, wanted: VerifyRange) -> object:
        delete_below(pair.source, moving, 50)
        delete_below(pair.target, f"{flow.source.alias}.{moving}", 80)
        return await compare(self, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(range_runner._RangeVerifier, "_compare", late)
        moved = pair.prove(flow, topics=(moving,))
    assert (moved.equal, moved.records) == (True, 220)
    assert by_reason(moved) == {reasons.EXPIRED_MEANWHILE_SOURCE: [(moving, 0, 50)], reasons.EXPIRED_MEANWHILE_TARGET: [(moving, 50, 80)]}


def test_history_that_was_copied_later_and_parts_by_time(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair.source, topic, 300)
    flow = pair.flow(topic, "ferry.start = latest")
    pair.run(flow)
    fill(pair.source, topic, 100, first=300)
    pair.run(flow)
    before = pair.prove(flow)
    assert (before.equal, before.records) == (True, 100)
    (reason,) = by_reason(before)
    assert reason.startswith(reasons.BEFORE_START)
    assert by_reason(before)[reason] == [(topic, 0, 300)]
    since, until = (datetime.fromtimestamp((START + 1_000 * number) / 1_000, UTC) for number in (50, 150))
    pair.run(flow, since=since, until=until)
    after = pair.prove(flow)
    assert (after.equal, after.records) == (True, 200)
    assert [entry[1:] for entries in by_reason(after).values() for entry in entries] == [(0, 50), (150, 300)]
    part = pair.prove(
        flow, since=datetime.fromtimestamp((START + 100_000) / 1_000, UTC), until=datetime.fromtimestamp((START + 320_000) / 1_000, UTC)
    )
    assert (part.equal, part.records) == (True, 70)
    assert [entry[1:] for entries in by_reason(part).values() for entry in entries] == [(150, 300)]


class Counting:
    """Dies behind a number of ranges, and counts them."""

    def __init__(self, dies_behind: int) -> None:
        self.left = dies_behind
        self.compared = 0

    def __call__(self, opened: OpenFlow, run_id: str, ranges: Sequence[VerifyRange]) -> Iterator[RangeResult]:
        for result in verify_inline(opened, run_id, ranges):
            self.compared += 1
            yield result
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


@pytest.mark.long
def test_a_second_try_goes_on_and_the_command_says_the_same(pair: Pair) -> None:
    topic = pair.topic(partitions=4)
    lines = (f"A->B.topics = {topic}",)
    config, (flow,) = pair.config(*lines), pair.flows(*lines)
    for partition in range(4):
        fill(pair.source, topic, 50, partition=partition)
    pair.run(flow)
    first, second = Counting(3), Counting(-1)
    with pytest.raises(KeyboardInterrupt):
        pair.prove(flow, "again", first)
    report = pair.prove(flow, "again", second)
    assert (first.compared, second.compared, report.resumed, report.ranges, report.records) == (3, 1, 3, 4, 200)
    command = [sys.executable, "-m", "ferry.cli.main", "verify", str(config), "--flow", flow.name]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120, check=False)
    document = json.loads(done.stdout)
    assert (done.returncode, document["equal"], document["records"], document["ranges"]) == (0, True, 200, 4)
    told = [(entry["partition"], entry["upstream"], entry["records"], entry["source_digest"]) for entry in document["verified"]]
    assert told == [(entry.partition, [0, 50], 50, entry.source_digest) for entry in report.verified]
    # Copied while the config had no handler; records of the remote topic that nobody explains make it differ.
    producer = Producer({"bootstrap.servers": pair.target.bootstrap})
    producer.produce(f"{flow.source.alias}.{topic}", b"stranger", partition=2)
    assert producer.flush(30) == 0
    report_file = config.parent / "proof.json"
    differs = subprocess.run([*command, "--report", str(report_file)], capture_output=True, text=True, timeout=120, check=False)
    assert differs.returncode == ExitCode.PARTLY_FAILED
    assert "ferry: CopiesDiffer:" in differs.stderr
    assert f"{topic}-2 downstream 51: extra" in differs.stdout
    written = json.loads(report_file.read_text())
    assert [(entry["kind"], entry["partition"], entry["downstream_offset"]) for entry in written["differences"]] == [("extra", 2, 51)]
    unknown = subprocess.run([*command, "--partition", "9"], capture_output=True, text=True, timeout=120, check=False)
    assert (unknown.returncode, "partition 9" in unknown.stderr) == (ExitCode.BAD_INPUT, True)
