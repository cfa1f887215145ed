"""What a verify makes of flows whose target is not simply a copy: handlers, both directions under one name, a source that began anew."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from tests.verify.conftest import Pair, numbers, write
from tools.kafka import SandboxCluster
from tools.kafka.topics import delete_topics

from ferry.errors import ExitCode
from ferry.verify import reasons
from ferry.verify.verify_report import VerifyReport

pytestmark = pytest.mark.brokers

HANDLER = """
from dataclasses import replace

class Handler:
    def handle(self, record):
        number = int(record.value)
        if number % 4 == 0:
            return []
        return [replace(record, value=b"changed")] * (3 if number % 4 == 1 else 1)
"""


def told(report: VerifyReport) -> dict[tuple[str, str], tuple[int, int]]:
    return {(entry.reason.split(":")[0], entry.side.value): (entry.start, entry.end) for entry in report.not_covered}


def named(report: VerifyReport) -> list[tuple[str, int, int]]:
    return [(entry.kind.value, entry.upstream_offset, entry.downstream_offset) for entry in report.differences]


def fill(cluster: SandboxCluster, topic: str, count: int, *, first: int = 0) -> None:
    write(cluster, topic, numbers(count, first), **{"batch.num.messages": 7})


def test_a_message_handler_leaves_presence_to_compare(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"handler_{secrets.token_hex(4)}"
    (tmp_path / f"{module}.py").write_text(HANDLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    topic = pair.topic()
    flow = pair.flow(topic, f"A->B.ferry.message.handler = {module}:Handler")
    fill(pair.source, topic, 80)
    assert pair.run(flow).records == 20 * 3 + 40
    report = pair.prove(flow)
    assert (report.equal, report.records) == (True, 60)
    assert told(report) == {(reasons.HANDLED.split(":")[0], "source"): (1, 80)}
    fill(pair.target, pair.remote(flow, topic), 1)
    assert named(pair.prove(flow)) == [("extra", -1, 101)]


@pytest.mark.long
def test_both_directions_under_one_name(pair: Pair) -> None:
    topic = pair.topic()
    pair.topic(pair.target, name=topic)
    fill(pair.source, topic, 40)
    fill(pair.target, topic, 30, first=1_000)
    lines = ("B->A.enabled = true", "replication.policy.class = IdentityReplicationPolicy", "A->B.ferry.on.unexplained = local")
    there, back = pair.flows(*lines, f"topics = {topic}")
    for flow in (there, back):
        pair.run(flow)
    fill(pair.source, topic, 10, first=40)
    fill(pair.target, topic, 10, first=2_000)
    for flow in (there, back, there):
        pair.run(flow)
    for flow, count in ((there, 50), (back, 40)):
        report = pair.prove(flow)
        assert (report.equal, report.records) == (True, count), named(report)
        assert ("came from the target by the flow in the other direction", "source") in told(report)
        assert (reasons.LOCAL.split(":")[0], "target") in told(report)


def test_partitions_whose_copies_or_ledger_were_deleted_fail(pair: Pair) -> None:
    """Found as records that were never copied they would pass: there is nothing left to differ from."""
    prefix = f"g{secrets.token_hex(4)}"
    deleted, renewed, whole = (pair.topic(name=f"{prefix}-{name}") for name in ("deleted", "renewed", "whole"))
    flow = pair.flow(f"{prefix}.*")
    for topic in (deleted, renewed, whole):
        fill(pair.source, topic, 20)
    pair.run(flow)
    for topic in (deleted, renewed):
        delete_topics(pair.target.client_settings(), pair.remote(flow, topic))
    pair.topic(pair.target, name=pair.remote(flow, renewed))
    report = pair.prove(flow)
    assert [(entry.topic, entry.partition, entry.error) for entry in report.failed] == [
        (deleted, 0, "TargetRecreated"),
        (renewed, 0, "TargetRecreated"),
    ]
    assert (report.equal, report.exit_code, report.records, report.differences) == (False, ExitCode.PARTLY_FAILED, 20, ())
    delete_topics(pair.target.client_settings(), flow.ledger_topic)
    pair.topic(pair.target, name=flow.ledger_topic)
    blind = pair.prove(flow, topics=(whole,))
    assert [(entry.topic, entry.error) for entry in blind.failed] == [(whole, "PositionDisagrees")]
    assert (blind.equal, blind.exit_code, blind.records) == (False, ExitCode.PARTLY_FAILED, 0)


@pytest.mark.long
def test_a_source_topic_that_began_anew(pair: Pair) -> None:
    topic = pair.topic()
    flow = pair.flow(topic, "A->B.ferry.on.recreate = restart")
    fill(pair.source, topic, 50)
    pair.run(flow)
    delete_topics(pair.source.client_settings(), topic)
    pair.topic(name=topic)
    fill(pair.source, topic, 20, first=500)
    before = pair.prove(flow)  # the next run has not seen it yet
    assert (before.differences, before.records, before.failed) == ((), 0, ())
    assert told(before)[reasons.NOT_COPIED_SINCE, "source"] == (0, 20)
    pair.run(flow, expected=None)
    after = pair.prove(flow)
    assert (after.equal, after.records) == (True, 20), (after.differences, after.failed)
    assert told(after) == {(reasons.OTHER_SOURCE, "target"): (0, 50)}
    fill(pair.target, pair.remote(flow, topic), 1)
    assert named(pair.prove(flow)) == [("extra", -1, 72)]
