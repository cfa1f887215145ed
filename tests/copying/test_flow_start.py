"""Where a flow begins: ferry.start is of its first run; whatever is newer than that run begins at the start of its log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest
from tests.copying.test_outcomes import RunFlow, Side, count, equal, errors, remote, source, target, topic
from tests.opened import flow_status, plan_run, seed
from tools.kafka.topics import grow_topic

from ferry.config import Flow
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.migration.positions import GivenPositions

pytestmark = pytest.mark.brokers
__all__ = ["source", "target", "topic"]

NOW = datetime.now(UTC)
LATEST = "A->B.ferry.start = latest"


def die(*_: object) -> NoReturn:
    raise ClusterUnreachable("the process ends before a lane has written anything")


@pytest.mark.parametrize(
    "start",
    [LATEST, "A.consumer.auto.offset.reset = latest", f"ferry.start = {NOW.isoformat()}"],
    ids=["latest", "auto.offset.reset", "time"],
)
def test_what_is_newer_than_the_first_run_is_copied_from_its_beginning(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow, start: str
) -> None:
    old = NOW - timedelta(hours=2)  # the time of a record does not say when its partition came
    source.produce(topic, 50, at=old)
    flow = flow_factory(f"A->B.topics = {topic}.*", start)
    assert run_flow(flow).records == 0
    new = f"{topic}-new"
    source.create(new, 1)
    source.produce(new, 40, partitions=1, at=old)
    grow_topic(source.cluster.client_settings(), topic, 3)
    source.produce(topic, 90, partitions=3, at=old)
    assert flow_status(flow).lag.records == 130
    assert run_flow(flow).records == 130
    assert run_flow(flow).records == 0
    assert equal(flow, source, target, new)
    assert count(target, remote(flow, topic)) == 90


def test_the_first_run_of_an_empty_flow_is_its_first(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    flow = flow_factory(f"A->B.topics = {topic}-.*", LATEST)
    assert plan_run(flow, RunRequest(flow.name, "look")).needs_preparation
    report = run_flow(flow)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 0)
    assert not plan_run(flow, RunRequest(flow.name, "look")).needs_preparation
    source.create(f"{topic}-new")
    source.produce(f"{topic}-new", 40)
    assert run_flow(flow).records == 40
    assert equal(flow, source, target, f"{topic}-new")


def test_a_first_run_that_was_killed_has_decided_where_the_flow_begins(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.produce(topic, 50)
    flow = flow_factory(f"A->B.topics = {topic}.*", LATEST)
    planned = plan_run(flow, RunRequest(flow.name, "look"))
    assert any("50 offsets in 2 partitions" in notice for notice in planned.notices)
    assert {note for plan in planned.partitions for note in plan.notes} == {"the start of the flow leaves out offsets 0 to 24"}
    with monkeypatch.context() as patched:
        patched.setattr(InlineLaneRunner, "run", die)
        with pytest.raises(ClusterUnreachable):
            run_flow(flow)
    source.produce(topic, 10)
    source.create(f"{topic}-new")
    source.produce(f"{topic}-new", 6)
    assert flow_status(flow).lag.records == 16
    assert run_flow(flow).records == 16
    assert count(target, remote(flow, topic)) == 10


def test_a_partition_that_failed_in_the_first_run_begins_where_the_flow_did(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    source.produce(topic, 50)
    flow = flow_factory(f"A->B.topics = {topic}.*", LATEST)
    target.create(remote(flow, topic), message_timestamp_type="LogAppendTime")
    assert errors(run_flow(flow)) == {"BatchRefused"}
    source.produce(topic, 10)
    target.configure(remote(flow, topic), "message.timestamp.type", "CreateTime")
    assert run_flow(flow).records == 10
    source.delete(topic)
    source.create(topic)  # it is newer than the flow
    source.produce(topic, 8)
    assert errors(run_flow(flow)) == {"SourceRecreated"}


def test_a_seed_of_one_topic_leaves_the_start_to_the_first_run_and_a_seed_of_all_is_the_start(
    flow_factory: Callable[..., Flow], topic: str, source: Side, run_flow: RunFlow
) -> None:
    other = f"{topic}-other"
    source.create(other, 1)
    source.produce(topic, 50)
    source.produce(other, 30, partitions=1)
    flow = flow_factory(f"A->B.topics = {topic}.*", LATEST)
    two = {(topic, 0): 20, (topic, 1): 25}
    given = seed(flow, RunRequest(flow.name, "seed-1"), GivenPositions("test", two), dry_run=True)
    assert [entry.reason for entry in given.left_out] == [
        "test has no offset for it: it begins at 30, which leaves out offsets 0 to 29, by the start policy (latest)"
    ]
    assert seed(flow, RunRequest(flow.name, "seed-1"), GivenPositions("test", two)).exit_code is ExitCode.DONE
    third = f"{topic}-third"
    source.create(third, 1)
    source.produce(third, 7, partitions=1)
    assert run_flow(flow).records == 5  # of the seeded partition: the first run comes after the seed
    source.produce(third, 3, partitions=1)
    assert run_flow(flow).records == 3


def test_a_seed_of_every_partition_is_the_start_of_the_flow(
    flow_factory: Callable[..., Flow], topic: str, source: Side, run_flow: RunFlow
) -> None:
    source.produce(topic, 50)
    flow = flow_factory(f"A->B.topics = {topic}.*", LATEST)
    every = GivenPositions("test", {(topic, 0): 20, (topic, 1): 25})
    assert seed(flow, RunRequest(flow.name, "seed-1"), every).exit_code is ExitCode.DONE
    source.create(f"{topic}-new", 1)
    source.produce(f"{topic}-new", 7, partitions=1)
    assert run_flow(flow).records == 12


def test_runs_of_single_topics_copy_what_is_newer_than_the_first_of_them(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = f"{topic}-other"
    source.create(other, 1)
    source.produce(topic, 50)
    source.produce(other, 9, partitions=1)
    flow = flow_factory(f"A->B.topics = {topic}.*", LATEST)
    with monkeypatch.context() as patched:
        patched.setattr(InlineLaneRunner, "run", die)
        with pytest.raises(ClusterUnreachable):
            run_flow(flow, topics=(topic,))
    source.produce(topic, 10)
    grow_topic(source.cluster.client_settings(), topic, 3)
    source.produce(topic, 90, partitions=3)
    for records in (100, 0):
        assert run_flow(flow, topics=(topic,)).records == records
    grow_topic(source.cluster.client_settings(), topic, 4)
    source.produce(topic, 8, partitions=4)
    plan = plan_run(flow, RunRequest(flow.name, "look", topics=(topic,)))
    assert {found.facts.partition: found.offsets for found in plan.partitions} == dict.fromkeys(range(4), 2), "the last one is added first"
    assert (plan.failed, plan.needs_copy) == ((), True)
    assert run_flow(flow, topics=(topic,)).records == 8
    assert run_flow(flow).records == 0, "the other topic has no run before: it begins at its end"
    assert count(target, remote(flow, topic)) == 108
