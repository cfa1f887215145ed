"""Two runs of one flow, stale pairs, lost workers, and topics that are replaced under a running copy."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.clusters.coordination import ProducerIdentity
from ferry.config import Flow
from ferry.copying import driver, lanes, survey, upkeep
from ferry.copying.fencing import FencedWriter
from ferry.copying.lane import Lane
from ferry.copying.lane_runner import InlineLaneRunner, More, run_lanes
from ferry.copying.lanes import upkeep_transactional_id
from ferry.copying.lanes_out import LANE_ATTEMPTS
from ferry.copying.model import CopyJob, Failure, LaneResult, LaneTask
from ferry.errors import ExitCode, Superseded
from ferry.policy.naming import ledger_topic, position_group
from ferry.reporting.run_report import RunReport
from ferry.sandbox import SandboxCluster, compare_topics, read_all

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
Between = Callable[[], object]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that is there for real brokers' restarts."""
    monkeypatch.setattr(driver, "FIRST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def topic(source_cluster: SandboxCluster, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source_cluster, partitions=3)


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}.*", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2")


@pytest.fixture
def fill(source_cluster: SandboxCluster, topic: str) -> Callable[..., None]:
    numbers = iter(range(1_000_000))

    def produce(count: int = 5_000, *, name: str = topic) -> None:
        producer = Producer({"bootstrap.servers": source_cluster.bootstrap, "linger.ms": 5, "batch.size": 100_000})
        for _ in range(count):
            number = next(numbers)
            producer.produce(name, value=f"{number} ".encode().ljust(1_000, b"x"), partition=number % 3)
            producer.poll(0)
        assert producer.flush(60) == 0

    return produce


@pytest.fixture
def equal(flow: Flow, topic: str, source_cluster: SandboxCluster, target_cluster: SandboxCluster) -> Callable[[], bool]:
    remote = f"{flow.source.alias}.{topic}"
    return lambda: compare_topics(source_cluster.bootstrap, target_cluster.bootstrap, {topic: remote}).equal


class Scripted:
    """A runner that does something before, or instead of, running the lanes of each call."""

    def __init__(self, *steps: Callable[[CopyJob, Sequence[LaneTask]], Iterator[LaneResult]]) -> None:
        self._steps = list(steps)
        self.calls: list[tuple[CopyJob, list[LaneTask]]] = []

    def run(self, job: CopyJob, tasks: Sequence[LaneTask], _: More = list) -> Generator[LaneResult]:
        self.calls.append((job, list(tasks)))
        step = self._steps.pop(0) if self._steps else run_lanes
        yield from step(job, tasks)


def after(act: Between) -> Callable[[CopyJob, Sequence[LaneTask]], Iterator[LaneResult]]:
    def step(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        act()
        return run_lanes(job, tasks)

    return step


def without_results(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
    """The lanes did their work, but the worker died before it could say so."""
    list(run_lanes(job, tasks))
    return iter(())


def never_ran(_: CopyJob, __: Sequence[LaneTask]) -> Iterator[LaneResult]:
    return iter(())


def at_commit(monkeypatch: pytest.MonkeyPatch, number: int, act: Between) -> None:
    """`act` once, when the `number`th commit of any lane begins: records are appended, the transaction is open."""
    commit, count = Lane._commit, iter(range(1, 1_000_000))

    async def interrupted(lane: Lane) -> None:
        if next(count) == number:
            act()
        await commit(lane)

    monkeypatch.setattr(Lane, "_commit", interrupted)


def log_ends(cluster: SandboxCluster, topic: str) -> list[int]:
    """True ends, with what was never committed."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends", "isolation.level": "read_uncommitted"})
    try:
        return [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=15)[1] for number in range(3)]
    finally:
        consumer.close()


def test_a_newer_run_supersedes_one_that_has_not_begun(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool]
) -> None:
    fill()
    newer: list[RunReport] = []
    with pytest.raises(Superseded, match="newer run took over"):
        run_flow(flow, runner=Scripted(after(lambda: newer.append(run_flow(flow)))))
    assert [(report.exit_code, report.records) for report in newer] == [(ExitCode.DONE, 5_000)]
    assert equal()
    assert run_flow(flow).records == 0


def test_a_newer_run_supersedes_one_inside_its_transaction(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill()
    newer: list[RunReport] = []
    at_commit(monkeypatch, 2, lambda: newer.append(run_flow(flow)))
    with pytest.raises(Superseded):
        run_flow(flow)
    assert newer[0].exit_code is ExitCode.DONE
    assert 0 < newer[0].records < 5_000  # the first transaction of the older run counts
    assert equal()


def test_a_run_superseded_between_two_looks_finds_nothing_wrong(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(30)
    run_flow(flow)
    fill(30)
    look, newer = survey.committed_positions, []

    def late(*about: object, settled: bool) -> object:
        if settled and not newer:
            newer.append("begun")
            newer.append(run_flow(flow))
        return look(*about, settled=settled)  # type: ignore[arg-type]

    monkeypatch.setattr(survey, "committed_positions", late)
    with pytest.raises(Superseded):  # and not PositionDisagrees, because the head was read before
        run_flow(flow)
    assert newer[1].records == 30
    assert equal()


def test_a_lane_superseded_before_it_compares_finds_nothing_wrong(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(30)
    compare, newer = Lane._compare_positions, []

    async def late(lane: Lane) -> None:
        if not newer:
            newer.append("begun")
            newer.append(run_flow(flow))
        await compare(lane)

    monkeypatch.setattr(Lane, "_compare_positions", late)
    with pytest.raises(Superseded):
        run_flow(flow)
    assert newer[1].records == 30
    assert equal()


def test_a_run_superseded_while_it_takes_a_lane_back_does_not_use_it(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(30)
    take, newer = FencedWriter.take, []
    older = Scripted(never_ran)

    def late(writer: FencedWriter, name: str) -> ProducerIdentity:
        if older.calls and not newer:
            newer.append("begun")
            newer.append(run_flow(flow))
        return take(writer, name)

    monkeypatch.setattr(FencedWriter, "take", late)
    with pytest.raises(Superseded):
        run_flow(flow, runner=older)
    assert len(older.calls) == 1
    assert newer[1].records == 30
    assert equal()


@pytest.fixture
def by_partitions(flow_factory: Callable[..., Flow], topic: str, monkeypatch: pytest.MonkeyPatch) -> Flow:
    """A flow whose config gives no number of lanes: its three partitions are three lanes, or as many as MOST_LANES."""
    monkeypatch.setattr(lanes, "FEWEST_LANES", 1)
    monkeypatch.setattr(lanes, "MOST_PARTITIONS", 1)
    return flow_factory(f"A->B.topics = {topic}.*", "A->B.ferry.transaction.mb = 1")


@pytest.mark.parametrize(("older", "newer", "commit"), [(3, 1, 5), (1, 3, 2)], ids=["fewer lanes", "more lanes"])
def test_a_newer_run_of_another_number_of_lanes_fences_those_of_the_older_one(
    older: int,
    newer: int,
    commit: int,
    by_partitions: Flow,
    fill: Callable[..., None],
    run_flow: RunFlow,
    equal: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "MOST_LANES", older)
    fill()
    took, stays = Scripted(), Scripted()

    def supersede() -> None:  # the last lane of the older run has a transaction open
        monkeypatch.setattr(lanes, "MOST_LANES", newer)
        assert run_flow(by_partitions, runner=took).exit_code is ExitCode.DONE

    at_commit(monkeypatch, commit, supersede)
    with pytest.raises(Superseded):
        run_flow(by_partitions, runner=stays)
    assert [len(tasks) for _, tasks in stays.calls] == [older]
    assert 0 < len(took.calls[0][1]) <= newer
    assert equal()
    assert run_flow(by_partitions).records == 0


def test_a_run_superseded_while_it_takes_more_lanes_uses_none(
    by_partitions: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MOST_LANES", 1)
    fill(30)
    run_flow(by_partitions)
    monkeypatch.setattr(lanes, "MOST_LANES", 3)
    fill(30)
    take, newer = FencedWriter.take, []
    older = Scripted()

    def late(writer: FencedWriter, name: str) -> ProducerIdentity:
        if name.endswith("-1") and not newer:
            newer.append("begun")
            newer.append(run_flow(by_partitions))
        return take(writer, name)

    monkeypatch.setattr(FencedWriter, "take", late)
    with pytest.raises(Superseded):
        run_flow(by_partitions, runner=older)
    assert (older.calls, newer[1].records) == ([], 30)
    assert equal()


def test_a_broker_that_forgets_the_last_pair_supersedes_nobody(
    flow: Flow, topic_factory: Callable[..., str], target_cluster: SandboxCluster
) -> None:
    """The answer to a commit is lost, and the coordinator restarts: it then knows the current pair only."""
    topic, name = topic_factory(target_cluster, partitions=1), f"ferry-{flow.name}-x"
    with FencedWriter(flow, "g", name, [topic]) as writer:
        writer.write({(topic, 0): [(b"k", b"v")]})
        answered = writer.identity
        writer.identity = answered._replace(epoch=answered.epoch - 1)
        target_cluster.restart()
        writer.confirm()
        writer.write({(topic, 0): [(b"k", b"w")]})
        writer.identity = writer.identity._replace(epoch=writer.identity.epoch - 1)
        target_cluster.restart()
        with FencedWriter(flow, "g", name, [topic]), pytest.raises(Superseded):
            writer.confirm()


def test_a_newer_holder_whose_pair_is_the_next_one_keeps_it(
    flow: Flow, topic_factory: Callable[..., str], target_cluster: SandboxCluster
) -> None:
    """Its epoch is the one that the older holder's commit would have led to."""
    topic, name = topic_factory(target_cluster, partitions=1), f"ferry-{flow.name}-x"
    with FencedWriter(flow, "g", name, [topic]) as older:
        older.write({(topic, 0): [(b"k", b"v")]})
        with FencedWriter(flow, "g", name, [topic]) as newer:
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

    def contested(flow: Flow) -> object:
        holder = (flow, position_group(flow.source.alias), upkeep_transactional_id(flow.name), [ledger_topic(flow.source.alias)])
        with FencedWriter(*holder) as first, FencedWriter(*holder):
            tidied.append(flow.name)
            first.confirm()
        raise AssertionError("the second one holds it")

    monkeypatch.setattr(upkeep, "UPKEEP_RECORDS", 1)
    monkeypatch.setattr(driver, "keep_ledger_tidy", contested)
    fill(300)
    report = run_flow(flow)
    assert (tidied, report.exit_code, report.superseded, report.records) == ([flow.name], ExitCode.DONE, None, 300)


def test_the_report_of_a_superseded_run_says_so(flow: Flow, fill: Callable[..., None], run_flow: RunFlow) -> None:
    from ferry.copying import pipeline  # noqa: PLC0415
    from ferry.copying.request import RunRequest  # noqa: PLC0415

    fill(30)
    request = RunRequest(flow.name, "older")
    pipeline.prepare_topics(flow, request)
    with pytest.raises(Superseded):
        pipeline.copy_ranges(flow, request, Scripted(after(lambda: run_flow(flow))), lambda _: None)
    report = pipeline.read_report(flow, request)
    assert report.exit_code is ExitCode.SUPERSEDED
    assert report.superseded is not None


def test_a_stale_pair_writes_nothing_at_all(
    flow: Flow, topic: str, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], target_cluster: SandboxCluster
) -> None:
    fill()
    kept = Scripted(never_ran)
    assert run_flow(flow, runner=kept).exit_code is ExitCode.DONE
    (job, stale), (_, renewed) = kept.calls
    assert {task.lane for task in stale} == {task.lane for task in renewed}
    before = log_ends(target_cluster, f"{flow.source.alias}.{topic}")
    for tasks in (stale, renewed):  # one whose pair was replaced, one whose pair has served
        results = list(run_lanes(job, tasks))
        assert [result.fenced for result in results] == [True] * len(tasks)
        assert all(result.failure is not None and result.failure.error == "Superseded" for result in results)
    assert log_ends(target_cluster, f"{flow.source.alias}.{topic}") == before
    assert equal()
    fill(60)
    assert run_flow(flow).records == 60
    assert equal()


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

    def run(self, job: CopyJob, tasks: Sequence[LaneTask], more: More) -> Generator[LaneResult]:
        first = tasks[0]
        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(lambda: list(run_lanes(job, tasks[1:])))
            yield LaneResult(first.lane, first.identity, failure=Failure("WorkerLost", "its worker died", passing=True))
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


def test_a_source_topic_that_goes_with_its_lanes_is_named(
    flow: Flow,
    topic: str,
    fill: Callable[..., None],
    run_flow: RunFlow,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: Callable[..., str],
) -> None:
    other = topic_factory(source_cluster, partitions=3, name=f"{topic}-other")
    fill(300)
    fill(300, name=other)

    def gone(_: CopyJob, __: Sequence[LaneTask]) -> Iterator[LaneResult]:
        replace_topic(source_cluster, topic, again=False)
        return iter(())

    report = run_flow(flow, runner=Scripted(gone))
    assert {(failure.topic, failure.partition, failure.error) for failure in report.failed} == {
        (topic, number, "SourceMissing") for number in range(3)
    }
    assert [len(side) for side in read_all(target_cluster.bootstrap, f"{flow.source.alias}.{other}")] == [100, 100, 100]


def test_finished_lanes_are_not_failed_by_what_another_one_finds(
    flow: Flow, topic: str, fill: Callable[..., None], run_flow: RunFlow, source_cluster: SandboxCluster
) -> None:
    fill(300)

    def one_is_lost(job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        yield from run_lanes(job, tasks[:1])
        replace_topic(source_cluster, topic, again=False)

    runner = Scripted(one_is_lost)
    report = run_flow(flow, runner=runner)
    lost = {(part.topic, part.partition) for task in runner.calls[0][1][1:] for part in task.partitions}
    assert lost
    assert {(failure.topic, failure.partition) for failure in report.failed} == lost


def replace_topic(cluster: SandboxCluster, topic: str, *, again: bool = True) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    client.delete_topics([topic])[topic].result(30)
    deadline = time.monotonic() + 20
    while topic in client.list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
    if again:
        client.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
        # The controller answers before the broker knows: a commit that names the topic in between is refused, and nothing is copied yet.
        while topic not in client.list_topics(timeout=10).topics:
            assert time.monotonic() < deadline


def test_a_remote_topic_replaced_under_the_last_commit_is_named(
    topic: str,
    flow_factory: Callable[..., Flow],
    fill: Callable[..., None],
    run_flow: RunFlow,
    monkeypatch: pytest.MonkeyPatch,
    target_cluster: SandboxCluster,
) -> None:
    flow = flow_factory(f"A->B.topics = {topic}", "A->B.ferry.lanes = 1")
    fill(900)
    remote = f"{flow.source.alias}.{topic}"
    at_commit(monkeypatch, 1, lambda: replace_topic(target_cluster, remote))
    for _ in range(2):  # the run itself, and the next one
        report = run_flow(flow)
        assert report.exit_code is ExitCode.PARTLY_FAILED
        assert [failure.error for failure in report.failed] == ["TargetRecreated"] * 3
    assert read_all(target_cluster.bootstrap, remote) == [[], [], []]


def test_a_remote_topic_replaced_under_a_run_gets_no_records(
    flow: Flow,
    topic: str,
    fill: Callable[..., None],
    run_flow: RunFlow,
    monkeypatch: pytest.MonkeyPatch,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
    topic_factory: Callable[..., str],
) -> None:
    other = topic_factory(source_cluster, partitions=3, name=f"{topic}-other")
    fill(9_000)
    fill(300, name=other)
    remote = f"{flow.source.alias}.{topic}"
    at_commit(monkeypatch, 2, lambda: replace_topic(target_cluster, remote))
    report = run_flow(flow)
    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert {failure.error for failure in report.failed} == {"TargetRecreated"}
    assert {failure.topic for failure in report.failed} == {topic}
    assert read_all(target_cluster.bootstrap, remote) == [[], [], []]
    assert [len(side) for side in read_all(target_cluster.bootstrap, f"{flow.source.alias}.{other}")] == [100, 100, 100]
    assert {failure.error for failure in run_flow(flow).failed} == {"TargetRecreated"}


@pytest.mark.parametrize(("again", "error"), [(True, "SourceRecreated"), (False, "SourceMissing")])
def test_a_source_topic_replaced_under_a_run_is_not_mixed(
    again: bool,
    error: str,
    flow: Flow,
    topic: str,
    fill: Callable[..., None],
    run_flow: RunFlow,
    monkeypatch: pytest.MonkeyPatch,
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> None:
    fill(60_000)
    wanted = read_all(source_cluster.bootstrap, topic)

    def strike() -> None:
        replace_topic(source_cluster, topic, again=again)
        if again:
            fill(9_000)

    at_commit(monkeypatch, 2, strike)
    report = run_flow(flow)
    assert {failure.error for failure in report.failed} == {error}
    for number, copies in enumerate(read_all(target_cluster.bootstrap, f"{flow.source.alias}.{topic}")):
        assert [copy.content for copy in copies] == [record.content for record in wanted[number][: len(copies)]]


def test_the_inline_runner_is_what_the_driver_expects(flow: Flow, fill: Callable[..., None], run_flow: RunFlow) -> None:
    fill(30)
    assert run_flow(flow, runner=InlineLaneRunner()).records == 30
