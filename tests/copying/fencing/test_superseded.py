"""A newer run takes over, at every moment of an older one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.copying.fencing.scripted import Scripted, after, at_commit, never_ran
from tests.opened import assemble_report, copy_run, prepare_run

from ferry.clusters.groups.coordination import Coordinator, ProducerIdentity
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.config import Flow
from ferry.copying import lanes, snapshot
from ferry.copying.fencing import FencedWriter
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, Superseded
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


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
    look, newer = snapshot.ask_positions, []

    def late(*about: object, stable: bool) -> Asked[dict[TopicPartition, int]]:
        def answer() -> dict[TopicPartition, int]:
            if stable and not newer:
                newer.append("begun")
                newer.append(run_flow(flow))
            return look(*about, stable=stable).answer()  # type: ignore[arg-type]

        return Asked(answer)

    monkeypatch.setattr(snapshot, "ask_positions", late)
    with pytest.raises(Superseded):  # and not PositionDisagrees, because the head was read before
        run_flow(flow)
    assert newer[1].records == 30
    assert equal()


def test_a_lane_superseded_before_it_compares_finds_nothing_wrong(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, equal: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(30)
    ask, newer = Coordinator.positions, []

    async def late(coordinator: Coordinator, *partitions: Any, **how: bool) -> dict[tuple[str, int], CommittedOffset]:
        if coordinator._transactional_id and not newer:  # a lane's
            newer.append("begun")
            newer.append(run_flow(flow))
        return await ask(coordinator, *partitions, **how)

    monkeypatch.setattr(Coordinator, "positions", late)
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

    def late(writer: FencedWriter, names: Sequence[str]) -> list[ProducerIdentity]:
        if names[0].endswith("-1") and not newer:
            newer.append("begun")
            newer.append(run_flow(by_partitions))
        return take(writer, names)

    monkeypatch.setattr(FencedWriter, "take", late)
    with pytest.raises(Superseded):
        run_flow(by_partitions, runner=older)
    assert (older.calls, newer[1].records) == ([], 30)
    assert equal()


def test_the_report_of_a_superseded_run_says_so(flow: Flow, fill: Callable[..., None], run_flow: RunFlow) -> None:
    fill(30)
    request = RunRequest(flow.name, "older")
    prepare_run(flow, request, spark_follows=True)
    with pytest.raises(Superseded):
        copy_run(flow, request, Scripted(after(lambda: run_flow(flow))), lambda _: None)
    report = assemble_report(flow, request)
    assert report.exit_code is ExitCode.SUPERSEDED
    assert report.superseded is not None
