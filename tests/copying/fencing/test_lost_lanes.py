"""Lanes whose worker is lost: they run again, or are given up by name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.conftest import Lab
from tests.copying.fencing.scripted import Scripted, never_ran, replace_topic, without_results
from tests.opened import run_lanes
from tools.kafka import read_all

from ferry.config import Flow
from ferry.copying import lanes
from ferry.copying.lane_attempts import LANE_ATTEMPTS
from ferry.copying.lane_messages import CopyJob, Failure, LaneResult, LaneTask
from ferry.copying.lane_runner import InlineLaneRunner, More
from ferry.errors import ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


@pytest.mark.parametrize("steps", [(never_ran,), (without_results,), (never_ran, without_results), (without_results, never_ran)])
def test_lanes_of_dead_workers_are_tried_again(
    steps: tuple[Callable[..., Iterator[LaneResult]], ...],
    flow: Flow,
    fill: Callable[..., None],
    run_flow: RunFlow,
    equal: Callable[[], bool],
) -> None:
    fill()
    report = run_flow(flow, runner=Scripted(*steps))
    assert (report.exit_code, report.records) == (ExitCode.DONE, 5_000)
    assert equal()


class OneIsLost:
    """The first lane is lost after its work was done but for the last word, and runs again while the others are at work in a thread."""

    def __init__(self) -> None:
        self.again: list[LaneTask] = []

    def run(self, _: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        first = tasks[0]
        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(lambda: list(run_lanes(job, tasks[1:])))
            yield LaneResult(first.lane, failure=Failure("WorkerLost", "its worker died", passing=True))
            self.again += more()
            assert list(more()) == []
            yield from run_lanes(job, self.again)
            yield from others.result()


def test_a_lost_lane_runs_again_while_others_run(
    topic: str, flow_factory: Callable[..., Flow], fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool]
) -> None:
    flow = flow_factory(f"A->B.topics = {topic}.*", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 3")
    fill(20_000)
    runner = OneIsLost()
    report = run_flow(flow, runner=runner)
    assert (report.exit_code, report.records) == (ExitCode.DONE, 20_000)
    assert [len(task.partitions) for task in runner.again] == [1]
    assert equal()


def test_a_lost_lane_does_not_wait_for_what_another_one_has_not_settled(
    topic: str, lab: Lab, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A position of another lane stays undecided for longer than anything waits for it."""
    monkeypatch.setattr(lanes, "LANE_WEIGHT", 1)
    flow = lab.flow(f"A->B.topics = {topic}.*", "A->B.ferry.lanes = 3")
    fill(300)

    def beside_an_open_transaction(_: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        first, *others = tasks
        yield from run_lanes(job, others)
        settings = {"transactional.id": f"{topic}-beside", "transaction.timeout.ms": 600_000}
        producer = Producer({**lab.target.client_settings(), **settings})
        producer.init_transactions(30)
        producer.begin_transaction()
        group = Consumer({**lab.target.client_settings(), "group.id": job.flow.position_group}).consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(*others[0].partitions[0].remote, 1)], group, 30)
        yield LaneResult(first.lane, failure=Failure("WorkerLost", "its worker died", passing=True))
        yield from run_lanes(job, more())
        producer.abort_transaction(30)

    report = lab.run(flow, runner=SimpleNamespace(run=beside_an_open_transaction))
    assert (report.exit_code, report.records) == (ExitCode.DONE, 300)


@pytest.mark.long
def test_lanes_that_never_come_back_are_given_up_by_name(
    flow: Flow, topic: str, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool]
) -> None:
    fill()
    report = run_flow(flow, runner=Scripted(*[never_ran] * LANE_ATTEMPTS))
    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert {(failure.topic, failure.partition, failure.error) for failure in report.failed} == {
        (topic, number, "PartitionUnavailable") for number in range(3)
    }
    assert run_flow(flow).records == 5_000
    assert equal()


def test_finished_lanes_are_not_failed_by_what_another_one_finds(
    flow: Flow, topic: str, fill: Callable[..., None], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "LANE_WEIGHT", 1)
    fill(300)

    def one_is_lost(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        yield from run_lanes(job, tasks[:1])
        replace_topic(lab.source, topic, again=False)

    runner = Scripted(one_is_lost)
    report = lab.run(flow, runner=runner)
    lost = {(part.topic, part.partition) for task in runner.calls[0][1][1:] for part in task.partitions}
    assert lost
    assert {(failure.topic, failure.partition) for failure in report.failed} == lost


def test_a_source_topic_that_goes_with_its_lanes_is_named(flow: Flow, topic: str, fill: Callable[..., None], lab: Lab) -> None:
    other = lab.topic(lab.source, partitions=3, name=f"{topic}-other")
    fill(300)
    fill(300, name=other)

    def gone(_: CopyJob, __: Sequence[LaneTask]) -> Iterator[LaneResult]:
        replace_topic(lab.source, topic, again=False)
        return iter(())

    report = lab.run(flow, runner=Scripted(gone))
    assert {(failure.topic, failure.partition, failure.error) for failure in report.failed} == {
        (topic, number, "SourceMissing") for number in range(3)
    }
    assert [len(side) for side in read_all(lab.target.bootstrap, f"{flow.source.alias}.{other}")] == [100, 100, 100]


def test_the_inline_runner_is_what_the_driver_expects(flow: Flow, fill: Callable[..., None], run_flow: RunFlow) -> None:
    fill(30)
    assert run_flow(flow, runner=InlineLaneRunner()).records == 30
