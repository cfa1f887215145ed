"""A flow that changes between transactions and flushes, after runs that ended and after runs that were killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.copying.fencing.scripted import Scripted, never_ran
from tests.copying.plain.conftest import PARTITIONS, REFUSING, Copy, Target
from tests.copying.plain.killed import MOMENTS, killed_at
from tests.opened import read_writers, run_lanes, state_of, verify
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.proxy.rules import Action

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
Mode = Callable[[bool], Flow]


@pytest.fixture
def mode(flow_factory: Callable[..., Flow], topic: str, proxied: Target, copy_only: tuple[str, ...]) -> Iterator[Mode]:
    """The flow, exactly once or not; the target takes transactions."""
    proxied.proxy.service = None
    lines = (f"A->B.topics = {topic}", "A->B.ferry.transaction.mb = 1", "A->B.ferry.lanes = 2", *copy_only)
    yield lambda exactly_once: flow_factory(*lines, f"A->B.transaction.producer = {str(exactly_once).lower()}", target=proxied)
    proxied.proxy.service = None


@pytest.fixture
def copies(topic: str, source_cluster: SandboxCluster, proxied: Target) -> Callable[[Flow], Copy]:
    return lambda flow: Copy(flow, topic, source_cluster, proxied.cluster)


@pytest.mark.long
def test_there_and_back_again(mode: Mode, copies: Callable[[Flow], Copy], fill: Callable[[int], None], run_flow: RunFlow) -> None:
    for exactly_once in (True, False, False, True, False, True):
        flow = mode(exactly_once)
        fill(1_000)
        report = run_flow(flow)
        assert (report.exit_code, report.records, report.repeated) == (ExitCode.DONE, 1_000, ())
        state = state_of(flow, stable=True)
        assert (bool(read_writers(flow)), state.flow is not None and state.flow.exactly_once) == (not exactly_once, exactly_once)
        copies(flow).assert_verified()
    assert copies(flow).assert_bounded() == 0


@pytest.mark.long
@pytest.mark.parametrize("exactly_once", [True, False], ids=["flushes before", "transactions before"])
def test_a_run_of_the_other_mode_fences(
    exactly_once: bool, mode: Mode, copies: Callable[[Flow], Copy], fill: Callable[[int], None], run_flow: RunFlow
) -> None:
    """Lanes of the mode before wake up after that run: their records do not count."""
    fill(3_000)
    kept = Scripted(never_ran)
    run_flow(mode(not exactly_once), runner=kept)
    flow = mode(exactly_once)
    fill(300)
    assert run_flow(flow).exit_code is ExitCode.DONE
    (job, _), (_, renewed) = kept.calls
    assert [result.failure is not None and result.failure.error for result in run_lanes(job, renewed)] == ["Superseded"] * len(renewed)
    assert copies(flow).assert_bounded() == 0


@pytest.mark.long
@pytest.mark.parametrize("refused", [False, True], ids=["the run fences it", "the target refuses to fence it"])
@pytest.mark.parametrize("what", ["records", "heads"])
def test_what_a_killed_run_left_in_a_transaction_never_counts(
    refused: bool,
    what: str,
    mode: Mode,
    copies: Callable[[Flow], Copy],
    fill: Callable[[int], None],
    run_flow: RunFlow,
    proxied: Target,
    path_of: Path,
) -> None:
    fill(6_000)
    assert killed_at(MOMENTS[what], Action.DELAY_ANSWER, 1, path_of, mode(True), proxied)
    flow = mode(False)
    with refusing(proxied, refused):
        assert run_flow(flow).exit_code is ExitCode.DONE
        copy = copies(flow)
        until(lambda: unread(proxied.cluster, copy.remote, True) == unread(proxied.cluster, copy.remote, False))  # the broker aborts it
        assert copy.assert_bounded() == 0
        copy.assert_verified()


def unread(cluster: SandboxCluster, topic: str, committed: bool) -> list[int]:
    """The ends of the topic's partitions for such a reader."""
    level = "read_committed" if committed else "read_uncommitted"
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends", "isolation.level": level})
    try:
        return [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1] for number in range(PARTITIONS)]
    finally:
        consumer.close()


@contextmanager
def refusing(target: Target, refused: bool) -> Iterator[None]:
    target.proxy.service = REFUSING if refused else None
    target.proxy.cut()
    yield
    target.proxy.service = None


@pytest.mark.long
@pytest.mark.parametrize("what", MOMENTS)
def test_what_a_killed_run_flushed_is_named_by_a_run_with_transactions(
    what: str,
    mode: Mode,
    copies: Callable[[Flow], Copy],
    fill: Callable[[int], None],
    run_flow: RunFlow,
    proxied: Target,
    path_of: Path,
) -> None:
    fill(6_000)
    assert killed_at(MOMENTS[what], Action.DELAY_ANSWER, 1, path_of, mode(False), proxied)
    flow = mode(True)
    # The last run made no transactions, whatever the next one does.
    found = verify(flow, VerifyRequest(flow.name, "between"), verify_inline, lambda _: None)
    assert (found.failed, found.differences) == ((), ())
    report = run_flow(flow)
    assert report.exit_code is ExitCode.DONE
    twice = copies(flow).assert_bounded()
    assert bool(twice) == bool(report.repeated)
    copies(flow).assert_verified()
    fill(300)
    report = run_flow(flow)
    assert (report.records, report.repeated, report.exit_code) == (300, (), ExitCode.DONE)


@pytest.fixture
def path_of(tmp_path: Path) -> Path:
    return tmp_path / "mm2.properties"
