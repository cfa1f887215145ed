"""A process that is told to end while a transaction is open aborts it first, then does what the signal always did."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType, SimpleNamespace

import pytest
from kafka.admin import KafkaAdminClient
from tests.conftest import Lab
from tools.kafka import SandboxCluster, compare_topics, read_all

from ferry.config import Flow
from ferry.copying import lane_runner
from ferry.copying.lane import Lane
from ferry.copying.signals import ABORT_SECONDS, StopSignals
from ferry.errors import ExitCode

NUMBERS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


class Told(BaseException):
    """What the process makes of the signal."""


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """The signals that came through, each raised as Told."""
    came: list[int] = []

    def handler(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise Told

    before = {number: signal.signal(number, handler) for number in NUMBERS}
    yield came
    for number, previous in before.items():
        signal.signal(number, previous)


@pytest.mark.unit
@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_waits_for_the_end(number: int, handled: list[int]) -> None:
    def work() -> None:
        with StopSignals() as stop_signals:
            assert not stop_signals.received
            os.kill(os.getpid(), number)
            assert stop_signals.received
            assert handled == []

    with pytest.raises(Told):
        work()
    assert handled == [number]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with StopSignals() as stop_signals:  # and the next one begins anew
        assert not stop_signals.received


@pytest.mark.unit
@pytest.mark.parametrize(
    ("signals", "by"),
    [
        ([signal.SIGTERM, signal.SIGTERM], signal.SIGTERM),
        ([signal.SIGHUP, signal.SIGTERM], signal.SIGHUP),
        ([signal.SIGINT, signal.SIGALRM], signal.SIGINT),  # too late for an abort
        ([signal.SIGALRM], signal.SIGALRM),  # somebody else's
    ],
)
def test_whoever_asks_twice_or_waits_too_long_ends_the_process(
    signals: list[int], by: int, handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    own = SimpleNamespace(getpid=os.getpid, kill=lambda process, number: sent.append((process, number)))
    with StopSignals():
        monkeypatch.setattr("ferry.copying.signals.os", own)
        for index, number in enumerate(signals):
            assert sent == []
            signal.raise_signal(number)
            if not index and number != signal.SIGALRM:
                assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= ABORT_SECONDS
        assert (sent, signal.getsignal(by)) == ([(os.getpid(), by)], signal.SIG_DFL)
    assert handled == []


@pytest.mark.unit
def test_every_handler_is_put_back(handled: list[int]) -> None:
    before = [signal.getsignal(number) for number in (*NUMBERS, signal.SIGALRM)]
    with StopSignals() as stop_signals:
        assert signal.getsignal(signal.SIGALRM) != before[-1]
    assert [signal.getsignal(number) for number in (*NUMBERS, signal.SIGALRM)] == before
    with stop_signals:
        stop_signals._previous[signal.SIGTERM] = None  # what was there was not set by Python
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert handled == []


@pytest.mark.unit
def test_other_threads_have_no_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def work() -> None:
        with StopSignals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.brokers
@pytest.mark.parametrize("side_by_side", [False, True])
def test_nothing_stays_open(side_by_side: bool, handled: list[int], lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    if side_by_side:
        monkeypatch.setattr(lane_runner, "FAR_SECONDS", -1.0)
    topic = lab.topic(lab.source, partitions=2)
    lab.produce(lab.source, topic, [(number % 2, b"k", str(number).encode()) for number in range(2_000)])
    flow = lab.flow(f"A->B.topics = {topic}")
    remote = f"{flow.source.alias}.{topic}"
    commit, opened = Lane._commit, []

    async def told_to_end(lane: Lane) -> None:
        opened.append(lanes_with(lab.target, flow, "Ongoing"))
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Lane, "_commit", told_to_end)
    with pytest.raises(Told):
        lab.run(flow)
    assert handled == [signal.SIGTERM]
    assert opened != []
    assert all(opened)
    assert lanes_with(lab.target, flow, "Ongoing") == set()
    assert read_all(lab.target.bootstrap, remote) == [[], []]
    monkeypatch.setattr(Lane, "_commit", commit)
    assert lab.run(flow).exit_code is ExitCode.DONE
    found = compare_topics(lab.source.bootstrap, lab.target.bootstrap, {topic: remote})
    assert (found.equal, found.records) == (True, 2_000)


def lanes_with(cluster: SandboxCluster, flow: Flow, state: str) -> set[str]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        listings = client.list_transactions(state_filters=[state]).values()
        prefix = f"ferry-{flow.name}-"
        return {entry.transactional_id for listing in listings for entry in listing if entry.transactional_id.startswith(prefix)}
    finally:
        client.close()
