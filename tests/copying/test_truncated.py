"""A source broker that comes back with another log: truncated as after an unclean leader election, or only compacted.

The one is named, never copied over, and the rest goes on; the other is copied as if nothing had happened.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.opened import flow_status, plan_run, state_of
from tools.kafka import SandboxCluster, read_all
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import load_config
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport
from ferry.ledger.state import encode_state

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
NEXT = RunRequest("", "next")
FIRST_MILLISECOND = 1_700_000_000_000
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown")


def produce_in_batches(cluster: SandboxCluster, topic: str, partition: int, values: range) -> None:
    """One batch per record, so that a log can be cut anywhere; their times count up with their values (ms)."""
    producer = Producer(cluster.client_settings())
    for number in values:
        producer.produce(topic, value=f"{number}".encode(), partition=partition, timestamp=FIRST_MILLISECOND + number)
        assert producer.flush(30) == 0


def cut_log(cluster: SandboxCluster, topic: str, partition: int, start: int, end: int = 1 << 62) -> None:
    """Remove every batch of offsets in [start, end), while the broker is down, and what it remembers about them but for leader epochs."""
    data = next(cluster.directory.rglob(f"{topic}-{partition}"))
    for log in data.glob("*.log"):
        content, kept, at = log.read_bytes(), b"", 0
        while at < len(content):
            offset, length = struct.unpack_from(">qi", content, at)
            kept += b"" if start <= offset < end else content[at : at + 12 + length]
            at += 12 + length
        log.write_bytes(kept)
        if not kept and int(log.stem):
            log.unlink()
    for pattern in ("*.index", "*.timeindex", "*.snapshot"):
        for path in data.glob(pattern):
            path.unlink()
    for name in CHECKPOINTS:
        (data.parent / name).unlink(missing_ok=True)


@pytest.fixture
def source(cluster_factory: Callable[..., SandboxCluster]) -> SandboxCluster:
    return cluster_factory()


@pytest.mark.long
@pytest.mark.parametrize("rewritten", [0, 5, 30], ids=["shorter", "shorter and rewritten", "rewritten beyond the position"])
def test_a_truncated_source_log_is_named_and_nothing_is_copied_over(rewritten: int, source: SandboxCluster, lab: Lab) -> None:
    topic = lab.topic(source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", source=source)
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(20))
    assert lab.run(flow).records == 40
    source.stop()
    cut_log(source, topic, 0, 12)
    source.run()
    assert len(read_all(source.bootstrap, topic)[0]) == 12
    produce_in_batches(source, topic, 0, range(1_000, 1_000 + rewritten))
    produce_in_batches(source, topic, 1, range(20, 25))

    report = lab.run(flow)

    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert [(failure.partition, failure.error) for failure in report.failed] == [(0, "SourceTruncated")]
    looks = plan_run(flow, NEXT).failed, flow_status(flow).stopped
    found = [[(failure.partition, failure.error) for failure in look] for look in looks]
    assert found == [[(0, "SourceTruncated")]] * 2, "plan and status say what the next run will say"
    status = CliRunner().invoke(app, ["status", str(lab.config(f"A->B.topics = {topic}", source=source)), "--flow", flow.name])
    assert status.exit_code == ExitCode.PARTLY_FAILED
    assert [status.stdout.count(note) for note in ("stopped: SourceTruncated", f"STOPPED: {topic}-0: SourceTruncated:")] == [1, 1]
    copied = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [[record.value for record in part] for part in copied] == [
        [f"{number}".encode() for number in range(20)],
        [f"{number}".encode() for number in range(25)],
    ]

    restarted = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.on.recreate = restart", source=source)
    assert lab.run(restarted).exit_code is ExitCode.DONE
    copied = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    assert [record.value for record in copied[0]] == [f"{number}".encode() for number in (*range(20), *range(1_000, 1_000 + rewritten))]
    assert lab.run(restarted).records == 0


@pytest.mark.parametrize("lasting", [False, True])
def test_a_leader_that_lags_behind_has_nothing_copied_twice(lasting: bool, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers are real ones; only the end that the source lists is an old one, at first or for ever."""
    topic = lab.topic(lab.source, partitions=1)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.on.recreate = restart")
    produce_in_batches(lab.source, topic, 0, range(10))
    assert lab.run(flow).records == 10
    produce_in_batches(lab.source, topic, 0, range(10, 12))
    ask, asked = ClusterAdmin.end_offsets, list[str]()

    def lagging(admin: ClusterAdmin, partitions: Iterable[TopicPartition], *, committed: bool = True) -> Any:
        found, problems = ask(admin, partitions, committed=committed)
        stale = {key: 7 for key in found if key.topic == topic}
        asked.extend(stale and [topic])
        return (found | stale if lasting or len(asked) < 3 else found), problems

    monkeypatch.setattr(ClusterAdmin, "end_offsets", lagging)
    report = lab.run(flow)

    failed = [(0, "PartitionUnavailable")] if lasting else []
    assert [(failure.partition, failure.error) for failure in report.failed] == failed
    copied = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")[0]
    assert [record.value for record in copied] == [f"{number}".encode() for number in range(10 if lasting else 12)]


@pytest.mark.long
def test_a_compacted_log_is_not_taken_for_a_truncated_one(source: SandboxCluster, lab: Lab) -> None:
    """A leader epoch began inside what compaction removed, and a run ended behind it; partition 1 has a head as Ferry once wrote them."""
    topic = lab.topic(source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", source=source)
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(10))
    source.stop()
    source.run()
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(10, 23))
    source.stop()
    for partition in (0, 1):
        cut_log(source, topic, partition, 10, 15)
    source.run()
    until = datetime.fromtimestamp((FIRST_MILLISECOND + 13) / 1_000, UTC)
    assert lab.run(flow, until=until).exit_code is ExitCode.DONE
    heads = state_of(flow, stable=True).heads
    assert [heads[topic, partition].position for partition in (0, 1)] == [15, 15]
    producer = Producer(lab.target.client_settings())
    key, value = encode_state(replace(heads[topic, 1], source_epoch=0))
    producer.produce(flow.state_topic, key=key, value=value)
    assert producer.flush(30) == 0

    report = lab.run(flow)

    assert (report.failed, report.exit_code) == ((), ExitCode.DONE)
    copied = read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")
    expected = [f"{number}".encode() for number in (*range(10), *range(15, 23))]
    assert [[record.value for record in part] for part in copied] == [expected, expected]
    assert lab.run(flow).records == 0


def test_offsets_that_were_given_again_are_no_records_of_the_other_flow(source: SandboxCluster, lab: Lab) -> None:
    """Names stay as they are in both directions, and A loses what `B->A` wrote to it: producers of A get the same offsets again.

    When that happens `A->B` has passed over what came from B in partition 0, and not yet in partition 1.
    """
    topic = lab.topic(source, partitions=2)
    lab.topic(lab.target, partitions=2, name=topic)
    both = ("B->A.enabled = true", "replication.policy.class = IdentityReplicationPolicy", "A->B.ferry.on.unexplained = local")
    there, back = load_config(lab.config(*both, f"topics = {topic}", source=source)).flows
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(5))
    assert lab.run(there).exit_code is ExitCode.DONE
    for partition, passing in ((0, [back, there]), (1, [back])):
        produce_in_batches(lab.target, topic, partition, range(100, 120))
        assert [lab.run(flow).exit_code for flow in passing] == [ExitCode.DONE] * len(passing)
    source.stop()
    for partition in (0, 1):
        cut_log(source, topic, partition, 5)
    source.run()
    local = [[record.value for record in part] for part in read_all(source.bootstrap, topic)]
    assert local == [[b"0", b"1", b"2", b"3", b"4"]] * 2
    for partition in (0, 1):
        produce_in_batches(source, topic, partition, range(5, 35))

    reports = [lab.run(flow) for flow in (there, back, there)]

    assert [(report.exit_code, report.failed) for report in reports] == [(ExitCode.DONE, ())] * 3
    assert [report.records for report in reports] == [60, 0, 0]
    for cluster, from_b in ((source, 0), (lab.target, 20)):
        for part in read_all(cluster.bootstrap, topic):
            values = [int(record.value or b"") for record in part]
            assert [value for value in values if value < 100] == list(range(35))
            assert [value for value in values if value >= 100] == list(range(100, 100 + from_b))
