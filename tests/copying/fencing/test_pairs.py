"""Pairs of producer id and epoch: stale ones write nothing, and only a newer holder supersedes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.conftest import Lab
from tests.copying.fencing.scripted import Scripted, never_ran
from tests.opened import fenced_writer, run_lanes
from tools.kafka import SandboxCluster

from ferry.config import Flow
from ferry.copying import ledger_compaction, upkeep
from ferry.errors import ExitCode, Superseded
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


def log_ends(cluster: SandboxCluster, topic: str) -> list[int]:
    """True ends, with what was never committed."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends", "isolation.level": "read_uncommitted"})
    try:
        return [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=15)[1] for number in range(3)]
    finally:
        consumer.close()


def test_a_broker_that_forgets_the_last_pair_supersedes_nobody(flow: Flow, lab: Lab) -> None:
    """The answer to a commit is lost, and the coordinator restarts: it then knows the current pair only."""
    topic, name = lab.topic(lab.target, partitions=1), f"ferry-{flow.name}-x"
    with fenced_writer(flow, name) as writer:
        writer.write({(topic, 0): [(b"k", b"v")]})
        answered = writer.identity
        writer.identity = answered._replace(epoch=answered.epoch - 1)
        lab.target.restart()
        writer.confirm()
        writer.write({(topic, 0): [(b"k", b"w")]})
        writer.identity = writer.identity._replace(epoch=writer.identity.epoch - 1)
        lab.target.restart()
        with fenced_writer(flow, name), pytest.raises(Superseded):
            writer.confirm()


def test_a_newer_holder_whose_pair_is_the_next_one_keeps_it(flow: Flow, lab: Lab) -> None:
    """Its epoch is the one that the older holder's commit would have led to."""
    topic, name = lab.topic(lab.target, partitions=1), f"ferry-{flow.name}-x"
    with fenced_writer(flow, name) as older:
        older.write({(topic, 0): [(b"k", b"v")]})
        with fenced_writer(flow, name) as newer:
            assert newer.identity == older.identity._replace(epoch=older.identity.epoch + 1)
            with pytest.raises(Superseded):
                older.confirm()
            newer.confirm()
            newer.write({(topic, 0): [(b"k", b"w")]})
            with pytest.raises(Superseded):
                older.confirm()
            newer.confirm()


def test_somebody_who_tidies_the_ledger_too_supersedes_no_run(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older run, at its end when this one took over, or a command: it holds the upkeep's id, and nothing else."""
    tidied = []

    def contested(opened: OpenFlow) -> object:
        holder = (opened.flow, flow.transactional_id("upkeep"))
        with fenced_writer(*holder) as first, fenced_writer(*holder):
            tidied.append(flow.name)
            first.confirm()
        raise AssertionError("the second one holds it")

    monkeypatch.setattr(ledger_compaction, "COMPACTION_RECORDS", 1)
    monkeypatch.setattr(upkeep, "compact_ledger", contested)
    fill(300)
    report = run_flow(flow)
    assert (tidied, report.exit_code, report.superseded, report.records) == ([flow.name], ExitCode.DONE, None, 300)


def test_a_stale_pair_writes_nothing_at_all(flow: Flow, topic: str, fill: Callable[..., None], lab: Lab, equal: Callable[[], bool]) -> None:
    fill()
    kept = Scripted(never_ran)
    assert lab.run(flow, runner=kept).exit_code is ExitCode.DONE
    (job, stale), (_, renewed) = kept.calls
    assert {task.lane for task in stale} == {task.lane for task in renewed}
    before = log_ends(lab.target, f"{flow.source.alias}.{topic}")
    for tasks in (stale, renewed):  # one whose pair was replaced, one whose pair has served
        results = list(run_lanes(job, tasks))
        assert [result.fenced for result in results] == [True] * len(tasks)
        assert all(result.failure is not None and result.failure.error == "Superseded" for result in results)
    assert log_ends(lab.target, f"{flow.source.alias}.{topic}") == before
    assert equal()
    fill(60)
    assert lab.run(flow).records == 60
    assert equal()
