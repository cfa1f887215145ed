"""Flows with a message handler: the target holds the handler applied to the source, exactly once, whatever is lost or killed."""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.copying.killed_twice import run_killed_twice
from tests.copying.raw_batches import append_raw
from tests.log_ends import until_markers
from tests.opened import acknowledge_losses, open_losses, read_receipts
from tests.wire.conftest import Row, build
from tools.kafka import SandboxCluster, read_all

from ferry.clusters.net.connections import ClusterConnection, RequestLost
from ferry.config import Flow
from ferry.copying import lane
from ferry.errors import ExitCode
from ferry.ledger.counters import ZERO
from ferry.ledger.receipts import ReceiptKind
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SOURCE = '''
from dataclasses import replace

from ferry.handling import Record

TOLD = []


class Handler:
    """By number: dropped, changed and re-keyed, kept, multiplied."""

    def __init__(self, args="new"):
        self.key = args.encode()

    def handle(self, record):
        number = int(record.value.split()[0])
        match number % 5:
            case 0:
                return
            case 1:
                yield replace(record, key=self.key, value=record.value.upper(), headers=(*record.headers, ("by", b"handler")))
            case 2:
                for index in range(3):
                    yield replace(record, key=b"%d" % index)
            case _:
                yield record


def stumbles(record):
    if record.value == b"private":
        raise ValueError(f"cannot read {record.value!r}")
    return [record] if record.offset % 2 else []


def returns(record):
    return [record]


def drops(record):
    return []


class Listener:
    def __init__(self, args=""):
        self.args = args

    def before_starting(self, assignments):
        TOLD.append(("starting", sorted((each.topic, each.partition, each.position) for each in assignments)))
        if self.args == "starting":
            raise OSError("private")

    def before_releasing(self, assignments):
        TOLD.append(("releasing", sorted((each.topic, each.partition, each.position) for each in assignments)))
        if self.args == "releasing":
            raise OSError("private")
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"handlers_{secrets.token_hex(4)}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def fill(cluster: SandboxCluster, topic: str, count: int, *, size: int = 40) -> None:
    """`count` records in batches of every codec, and some between them whose transaction is aborted."""
    for index, codec in enumerate(CODECS):
        settings = {**cluster.client_settings(), "linger.ms": 5, "compression.type": codec}
        append(Producer(settings), topic, range(index * count // len(CODECS), (index + 1) * count // len(CODECS)), size)
        if codec == "snappy":
            producer = Producer({**settings, "transactional.id": f"abort-{topic}"})
            producer.init_transactions(30)
            producer.begin_transaction()
            append(producer, topic, range(7), size)
            producer.abort_transaction(30)
    until_markers(cluster, topic)


def append(producer: Producer, topic: str, numbers: range, size: int) -> None:
    for number in numbers:
        text = b"%d kept " % number
        producer.produce(topic, text.ljust(size, b"x"), b"%d" % number, partition=number % 2, headers=[("n", b"%d" % number)])
        producer.poll(0)
    assert producer.flush(60) == 0


def expected(record: tuple[object, ...], key: bytes) -> list[tuple[object, ...]]:
    """What the handler of SOURCE makes of a record, said once more."""
    before, value, headers, timestamp = record
    assert isinstance(value, bytes)
    assert isinstance(headers, tuple)
    number = int(value.split()[0])
    return {
        0: [],
        1: [(key, value.upper(), (*headers, ("by", b"handler")), timestamp)],
        2: [(b"%d" % index, value, headers, timestamp) for index in range(3)],
    }.get(number % 5, [(before, value, headers, timestamp)])


def assert_handled(flow: Flow, topic: str, source: SandboxCluster, target: SandboxCluster, key: bytes = b"new") -> None:
    """The target is the handler applied to the source, and the ledger maps each kept record to its first output."""
    upstream, downstream = read_all(source.bootstrap, topic), read_all(target.bootstrap, f"{flow.source.alias}.{topic}")
    images: dict[tuple[int, int], int] = {}
    for number, (records, copies) in enumerate(zip(upstream, downstream, strict=True)):
        wanted = [(record, output) for record in records for output in expected(record.content, key)]
        assert [copy.content for copy in copies] == [output for _, output in wanted]
        for (record, _), copy in zip(wanted, copies, strict=True):
            images.setdefault((number, record.offset), copy.offset)
    receipts = [receipt for receipt in read_receipts(flow) if receipt.kind == ReceiptKind.COPIED]
    mapped = {
        (receipt.partition, start + step): base + step
        for receipt in receipts
        for start, base, count in receipt.runs
        for step in range(count)
    }
    assert mapped == images
    total = sum(map(len, upstream))
    assert sum(receipt.counters.records for receipt in receipts) == sum(map(len, downstream))
    assert sum(receipt.counters.records + receipt.counters.dropped - receipt.counters.added for receipt in receipts) == total


def test_drop_change_and_fan_out_over_two_runs(lab: Lab, module: str) -> None:
    topic = lab.topic(lab.source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", f"ferry.message.handler = {module}:Handler", "ferry.message.handler.args = other")
    for _ in range(2):
        fill(lab.source, topic, 1_000)
        report = lab.run(flow)
        assert report.exit_code is ExitCode.DONE, report.problems()
    assert_handled(flow, topic, lab.source, lab.target, b"other")
    counted = sum((entry.counters for entry in report.partitions), ZERO)
    assert (counted.forwarded, counted.reframed, counted.dropped, counted.added) == (0, 0, 200, 400)
    assert counted.handled >= 2 * len(CODECS)


def test_a_handler_hands_back_whatever_the_log_holds(lab: Lab, module: str) -> None:
    """Brokers append times that no client sends. Together in one batch, the times are further apart than 64 bits."""
    topic = lab.topic(lab.source, config={"message.timestamp.after.max.ms": str((1 << 63) - 1)})
    flow = lab.flow(f"A->B.topics = {topic}", f"ferry.message.handler = {module}:returns")
    times = (-5, -(1 << 63) + (1 << 42), -2, 1 << 62, -1, 0, 7)
    fields = [(b"", b"", (("", b""), ("h", None), ("h", b"1"))), (None, None, ()), (b"k", None, ())]
    batches = [build([Row(0, time, *fields[index % 3])], codec=index % 3) for index, time in enumerate(times)]
    append_raw(flow.source, topic, *batches)
    report = lab.run(flow)
    assert report.exit_code is ExitCode.DONE, report.problems()
    (upstream,), (copies,) = read_all(lab.source.bootstrap, topic), read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [record.content[3] for record in upstream] == list(times)
    assert [copy.content for copy in copies] == [record.content for record in upstream]


@pytest.mark.long
def test_lost_answers(lab: Lab, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", f"ferry.message.handler = {module}:Handler", "ferry.transaction.mb = 1")
    fill(lab.source, topic, 8_000, size=600)
    monkeypatch.setattr(lane, "RECOVERY_PAUSE_SECONDS", 0.01)
    chance, submit, struck = random.Random(5), ClusterConnection.submit, []

    def sometimes_lost(connection: ClusterConnection, request: object, *rest: object) -> object:
        future = submit(connection, request, *rest)  # type: ignore[arg-type]
        if type(request).__name__ in {"BatchesRequest", "EndTxnRequest"} and chance.random() < 0.1 and len(struck) < 6:
            struck.append(request)
            lost = type(future)()
            future.add_both(lambda _: lost.failure(RequestLost("made up")))
            return lost
        return future

    monkeypatch.setattr(ClusterConnection, "submit", sometimes_lost)
    monkeypatch.setattr(ClusterConnection, "classified", lambda _self, problem: problem)
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert struck
    assert_handled(flow, topic, lab.source, lab.target)


def test_kills(lab: Lab, module: str, tmp_path: Path) -> None:
    """`ferry run` is killed as soon as each of two transactions has been committed, the next one under way."""
    topic = lab.topic(lab.source, partitions=2)
    lines = (f"A->B.topics = {topic}", f"ferry.message.handler = {module}:Handler", "ferry.transaction.mb = 1", "ferry.lanes = 1")
    flow = lab.flow(*lines)
    fill(lab.source, topic, 12_000, size=600)
    run_killed_twice(lab.config(*lines), flow, tmp_path)
    assert_handled(flow, topic, lab.source, lab.target)


def test_an_exception_stops_its_partition_before_the_record(lab: Lab, module: str) -> None:
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(0, None, b"private" if number == 33 else b"%d" % number) for number in range(60)])
    lab.produce(lab.source, topic, [(1, None, b"%d" % number) for number in range(60)])
    flow = lab.flow(f"A->B.topics = {topic}", f"ferry.message.handler = {module}:stumbles")
    for _ in range(2):
        report = lab.run(flow)
        assert report.exit_code is ExitCode.PARTLY_FAILED
        (failure,) = report.failed
        assert (failure.topic, failure.partition, failure.error) == (topic, 0, "HandlerFailed")
        assert failure.problem.startswith("offset 33: the handler raised ValueError at handlers_")
        assert "private" not in str(report.document())
    copies = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [[int(record.value or b"") for record in side] for side in copies] == [list(range(1, 33, 2)), list(range(1, 60, 2))]
    flow = lab.flow(f"A->B.topics = {topic}", f"ferry.message.handler = {module}:drops")
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert sum(receipt.counters.dropped for receipt in read_receipts(flow)) == 17 + 30 + 27
    assert [len(side) for side in read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")] == [16, 30]


def test_a_listener_is_told_around_each_lane(lab: Lab, module: str) -> None:
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(number % 2, None, b"x") for number in range(10)])
    lines = (f"A->B.topics = {topic}", f"ferry.assignment.listener = {module}:Listener", "ferry.lanes = 1")
    told = __import__(module).TOLD
    report = lab.run(lab.flow(*lines, "ferry.assignment.listener.args = starting"))
    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert [failure.error for failure in report.failed] == ["ListenerFailed"]
    assert "before_starting: raised OSError at handlers_" in report.failed[0].problem
    assert "private" not in str(report.document())
    assert (report.records, told) == (0, [("starting", [(topic, 0, 0), (topic, 1, 0)])])
    told.clear()
    report = lab.run(lab.flow(*lines, "ferry.assignment.listener.args = releasing"))
    assert [failure.error for failure in report.failed] == ["ListenerFailed"]
    assert report.records == 10
    assert told == [("starting", [(topic, 0, 0), (topic, 1, 0)]), ("releasing", [(topic, 0, 5), (topic, 1, 5)])]


def test_refused_records_alone_are_skipped(lab: Lab) -> None:
    """Two records of many are too old for the target, one is too large; all three stand within larger batches."""
    topic = lab.topic(lab.source)
    producer = Producer({**lab.source.client_settings(), "linger.ms": 100, "message.max.bytes": 3_000_000})
    refused, now = {41, 77, 150}, round(time.time() * 1000)
    for number in range(300):
        value = os.urandom(60_000) if number == 150 else b"%d" % number
        producer.produce(topic, value, timestamp=1_000 if number in {41, 77} else now)
    assert producer.flush(30) == 0
    stops = lab.flow(f"A->B.topics = {topic}")
    limits = {"message.timestamp.before.max.ms": "3600000", "max.message.bytes": "50000"}
    lab.topic(lab.target, name=f"{stops.source.alias}.{topic}", config=limits)
    report = lab.run(stops)
    assert (report.exit_code, [failure.error for failure in report.failed]) == (ExitCode.PARTLY_FAILED, ["BatchRefused"])
    flow = lab.flow(f"A->B.topics = {topic}", "ferry.abort.on.send.failure = false")
    report = lab.run(flow)
    assert (report.exit_code, report.failed) == (ExitCode.DATA_LOST, ())
    assert [type(problem).__name__ for problem in report.problems()] == ["RecordsSkipped"]
    assert [(loss.upstream_start, loss.upstream_end, loss.kind) for loss in report.losses] == [
        (at, at + 1, "skipped") for at in sorted(refused)
    ]
    assert ["INVALID_TIMESTAMP" in loss.reason for loss in report.losses] == [True, True, False]
    assert "MESSAGE_TOO_LARGE" in report.losses[2].reason
    (upstream,), (copies,) = read_all(lab.source.bootstrap, topic), read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [copy.content for copy in copies] == [record.content for record in upstream if record.offset not in refused]
    images = {
        (start + step, base + step) for receipt in read_receipts(flow) for start, base, count in receipt.runs for step in range(count)
    }
    kept = [record.offset for record in upstream if record.offset not in refused]
    assert images == set(zip(kept, [copy.offset for copy in copies], strict=True))
    assert lab.run(flow).exit_code is ExitCode.DONE
    assert len(open_losses(flow)) == 3
    acknowledge_losses(flow)
    assert open_losses(flow) == []
