"""Compacted topics: what compaction removed is no difference, whatever cleanup.policy says today; a key that should be gone is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.cli.inside import ferry
from tests.opened import read_evidence, sync_configs, write_tombstones
from tests.verify.conftest import Pair, Row, write
from tests.waiting import until
from tools.kafka import SandboxCluster, read_all

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.translation.offset_map import LogBounds, OffsetMap
from ferry.translation.translated import Translation
from ferry.verify.request import VerifyRequest
from ferry.verify.undeleted import Written

pytestmark = [pytest.mark.brokers, pytest.mark.long]

EAGER = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}
LAZY = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "max.compaction.lag.ms": str((1 << 63) - 1)}


def configure(cluster: SandboxCluster, kind: ResourceType, name: str, **entries: str) -> None:
    change = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in entries.items()]
    resource = ConfigResource(kind, name, incremental_configs=change)
    client = AdminClient(cluster.client_settings())
    client.incremental_alter_configs([resource])[resource].result(30)


@pytest.fixture(scope="module", autouse=True)
def quick_cleaners(clusters: tuple[SandboxCluster, SandboxCluster]) -> None:
    for cluster in clusters:
        configure(cluster, ResourceType.BROKER, "1", **{"log.cleaner.backoff.ms": "100"})


def put(cluster: SandboxCluster, topic: str, *pairs: tuple[bytes, bytes | None]) -> None:
    write(cluster, topic, [(value, key, [], 0) for key, value in pairs])


def keys_of(cluster: SandboxCluster, topic: str) -> dict[bytes, bytes | None]:
    """What a reader of the whole topic ends with."""
    return {record.key: record.value for record in read_all(cluster.client_settings(), topic)[0]}


def until_cleaned(pair: Pair, flow: Flow, cluster: SandboxCluster, done: Callable[[list[tuple[bytes, bytes | None]]], bool]) -> None:
    """Until the log of one side is as wanted. Each new record begins a segment there, so that the one before can be cleaned."""
    topic, ticks = flow.topics[0], count()
    name = topic if cluster is pair.source else pair.remote(flow, topic)

    def look() -> bool:
        put(pair.source, topic, (b"tick", f"{next(ticks)}".encode()))
        if cluster is pair.target:
            pair.run(flow)
        return done([(record.key, record.value) for record in read_all(cluster.client_settings(), name)[0] if record.key != b"tick"])

    until(look)


@pytest.mark.parametrize("cleaned", ["source", "target"])
def test_what_was_compacted_once_is_no_difference_under_a_later_policy(pair: Pair, cleaned: str) -> None:
    topic = pair.topic(config=LAZY)
    rows: list[Row] = [(f"{number}".encode(), f"k{number % 5}".encode(), [], 0) for number in range(80)]
    write(pair.source, topic, rows)
    flow = pair.flow(topic)
    pair.run(flow)
    remote = pair.remote(flow, topic)
    cluster, name = (pair.source, topic) if cleaned == "source" else (pair.target, remote)
    configure(cluster, ResourceType.TOPIC, name, **EAGER)
    put(pair.source, topic, *((b"tick", f"{number}".encode()) for number in range(3)))
    pair.run(flow)
    until_cleaned(pair, flow, cluster, lambda left: len(left) <= 5)
    before = pair.prove(flow)
    assert before.equal
    assert [entry.reason for entry in before.not_covered if entry.reason.startswith("compaction")]
    for cluster, name in ((pair.source, topic), (pair.target, remote)):
        configure(cluster, ResourceType.TOPIC, name, **{"cleanup.policy": "delete", "retention.ms": "-1"})
    sync_configs(flow)
    after = pair.prove(flow)
    assert (dict(after.counts), after.exit_code) == ({}, ExitCode.DONE)


def test_a_key_whose_tombstone_was_dropped_before_it_was_copied_is_named(pair: Pair) -> None:
    """Only such a key: not one that was changed or deleted and copied, nor one whose new value or tombstone is still to copy."""
    topic = pair.topic(config=LAZY)
    put(pair.source, topic, *((key, b"v1") for key in (b"bob\x00\xff", b"changed", b"deleted", b"to change", b"to delete", b"same")))
    flow = pair.flow(topic)
    pair.run(flow)
    put(pair.source, topic, (b"changed", b"v2"), (b"deleted", None))
    pair.run(flow)
    configure(pair.source, ResourceType.TOPIC, topic, **EAGER)
    put(pair.source, topic, (b"bob\x00\xff", None), (b"to change", b"v2"))
    gone = {b"bob\x00\xff", b"deleted"}
    until_cleaned(pair, flow, pair.source, lambda left: len(left) == 4 and not gone & {key for key, _ in left})
    configure(pair.source, ResourceType.TOPIC, topic, **LAZY)
    put(pair.source, topic, (b"to delete", None))
    arguments = (str(flow.source.path), "--flow", flow.name)
    for command in ("plan", "doctor"):
        said = ferry(command, *arguments, environment={"COLUMNS": "300"})
        assert f"{topic}: the source drops tombstones after 100 ms (delete.retention.ms), and" in said.stdout + said.stderr, said
    for _ in range(2):  # before and after the rest is copied
        report = pair.prove(flow)
        (found,) = report.differences
        assert (dict(report.counts), report.exit_code) == ({"undeleted": 1}, ExitCode.PARTLY_FAILED)
        assert (found.kind, found.upstream_offset, found.downstream_offset) == ("undeleted", 0, 0)
        assert found.detail.startswith(r"key 'bob\x00\xff': the source dropped its tombstone before it was copied")
        pair.run(flow)
    assert keys_of(pair.target, pair.remote(flow, topic)) == {
        b"bob\x00\xff": b"v1",
        b"changed": b"v2",
        b"deleted": None,
        b"to change": b"v2",
        b"to delete": None,
        b"same": b"v1",
    } | {b"tick": keys_of(pair.source, topic)[b"tick"]}

    told = ferry("verify", *arguments, "--write-tombstones", "--json")
    assert (told.returncode, f"{flow.source.alias}.{topic}-0: 1 tombstone written" in told.stderr) == (ExitCode.PARTLY_FAILED, True), told
    assert [entry["tombstones"] for entry in json.loads(told.stdout)["tombstones"]] == [1]
    assert keys_of(pair.target, pair.remote(flow, topic))[b"bob\x00\xff"] is None
    end = explained(flow, topic)
    put(pair.source, topic, (b"new", b"v1"), (b"bob\x00\xff", b"v3"))
    assert pair.prove(flow).equal
    for _ in range(2):
        pair.run(flow)
        assert pair.prove(flow).equal
    assert keys_of(pair.target, pair.remote(flow, topic))[b"bob\x00\xff"] == b"v3"
    assert (end.reason, explained(flow, topic).reason) == (None, None), "offsets are translated exactly"
    assert "tombstones of keys that the source deleted" in ferry("ledger", *arguments, environment={"COLUMNS": "300"}).stdout
    again = ferry("verify", *arguments, "--write-tombstones")
    assert (again.returncode, "tombstone" in again.stderr) == (0, False)


def test_tombstones_are_written_in_partitions_that_the_report_does_not_name(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = pair.topic(config=LAZY, partitions=2)
    write(pair.source, topic, [(b"v1", b"bob", [], 0), (b"v1", b"kept", [], 0)], (0, 1))
    flow = pair.flow(topic)
    monkeypatch.setattr("ferry.verify.undeleted.KEY_BYTES", flow.memory_bytes)  # one key fits, so each has a share of its own
    pair.run(flow)
    configure(pair.source, ResourceType.TOPIC, topic, **EAGER)
    write(pair.source, topic, [(None, b"bob", [], 0)], (0, 1))

    def gone() -> bool:
        write(pair.source, topic, [(b"v1", b"tick", [], 0)], (0, 1))
        return b"bob" not in {record.key for record in read_all(pair.source.client_settings(), topic)[0]}

    until(gone)
    configure(pair.source, ResourceType.TOPIC, topic, **LAZY)
    monkeypatch.setattr("ferry.verify.verify_report.DIFFERENCES_LISTED", 1)
    report = pair.prove(flow)
    assert (dict(report.counts), len(report.differences)) == ({"undeleted": 2}, 1)
    remote = pair.remote(flow, topic)
    written: list[Written] = []
    write_tombstones(flow, report, "tombstones", written.append)
    assert list(map(str, written)) == [f"{remote}-{number}: 1 tombstone written" for number in range(2)]
    assert pair.prove(flow).equal


def explained(flow: Flow, topic: str) -> Translation:
    """Where a group continues on the target that has read all that was copied."""
    (entry,) = read_evidence(flow, VerifyRequest(flow.name, "look", topics=(topic,))).partitions
    bounds = LogBounds(entry.source_start, entry.target_start, entry.target_end, entry.position)
    return OffsetMap(entry.receipts, bounds).translate(entry.position)
