"""On virtual time hours pass at once, one seed gives one run, and nothing of Ferry or kafka-python looks at the real clock."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import kafka.errors as kafka_errors
import pytest
from kafka.future import Future
from tests.simulation.virtual_time import BEGINNING, WaitsForEver, virtual_time

from ferry import clock
from ferry.clusters.net import connections
from ferry.clusters.net.connections import BOOTSTRAP_MILLISECONDS, ClusterConnection
from ferry.clusters.net.event_loop import EventLoop, Wakeup
from ferry.config import ClientRole, Flow, load_config
from ferry.copying.progress import FIRST_SECONDS, JOIN_SECONDS, REPEAT_SECONDS, beside, named_when_slow
from ferry.errors import ClusterUnreachable

pytestmark = pytest.mark.unit

HOUR = 3_600.0


def test_hours_pass_at_once() -> None:
    real, begun = time.time, time.monotonic()
    with virtual_time(1) as world:
        clock.sleep(HOUR)
        assert (clock.monotonic(), clock.time(), clock.time_ms()) == (HOUR, BEGINNING + HOUR, (BEGINNING + HOUR) * 1_000)
        loop = EventLoop()
        wakeup = Wakeup(loop)
        sleeping = loop.start(loop.sleep, 3 * HOUR)
        assert loop.run(loop.done_by, 2 * HOUR, sleeping) is False
        assert world.now == pytest.approx(2 * HOUR)
        loop.run(wakeup.wait, HOUR)
        loop.result(sleeping)
        assert world.now == pytest.approx(4 * HOUR)
        loop.close()
    assert time.monotonic() - begun < HOUR
    assert clock.time is real


def told(seed: int) -> list[tuple[float, int, str]]:
    """What three threads do that wait at the same moments and for each other."""
    lines: list[tuple[float, int, str]] = []
    with virtual_time(seed) as world:
        over = clock.Event()

        def work(number: int) -> None:
            order = [1.0, 1.0, 2.0]
            clock.shuffle(order)
            for seconds in order:
                clock.sleep(seconds)
                lines.append((round(world.now, 3), number, clock.token_hex(2)))
            if number == 0:
                over.set()
            else:
                assert over.wait(HOUR)

        threads = [clock.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (world.now < 5.0, [thread.is_alive() for thread in threads]) == (True, [False] * 3)
    return lines


def test_a_seed_gives_one_run_and_another_seed_another_one() -> None:
    assert told(7) == told(7)
    runs = [told(seed) for seed in range(20)]
    assert len({tuple(number for _, number, _ in run) for run in runs}) > 5, "the seed decides who goes on"
    assert len({run[0][2] for run in runs}) == len(runs)


@pytest.mark.parametrize("kept", [0, 50])
def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_set(kept: int) -> None:
    """`kept`: objects that lie in between in memory."""
    fired: list[int] = []
    between: list[object] = []
    with virtual_time(1), closing(EventLoop()) as loop:
        for number in range(100):
            between += [object() for _ in range(kept)]
            loop.selector.call_at(1.0, lambda number=number: fired.append(number))
        loop.run(loop.sleep, 2.0)
    assert fired == list(range(100))


def test_a_slow_step_is_named_to_the_second() -> None:
    said: list[str] = []
    with virtual_time(1), named_when_slow(said.append, "planning"):
        clock.sleep(FIRST_SECONDS + 2 * REPEAT_SECONDS + 1)
    assert said == ["still planning (5 s)", "still planning (20 s)", "still planning (35 s)"]


def test_a_thread_that_takes_long_is_not_waited_for_and_ends_with_the_world() -> None:
    ended: list[float] = []
    with virtual_time(1) as world:

        def hang(_: object) -> None:
            try:
                clock.sleep(HOUR)
            finally:
                ended.append(world.now)

        with beside("hangs", hang):
            pass
        assert (world.now, ended) == (JOIN_SECONDS, [])
    assert ended == [JOIN_SECONDS]


async def forever() -> None:
    await Future()


@pytest.mark.parametrize("wait", [lambda _: clock.Event().wait(), lambda loop: loop.run(forever)], ids=["event", "loop"])
def test_who_waits_for_ever_is_named(wait: Callable[[EventLoop], object]) -> None:
    with virtual_time(1), closing(EventLoop()) as loop:
        clock.Thread(target=clock.Event().wait, name="other").start()
        with pytest.raises(WaitsForEver, match="main, other"):
            wait(loop)


def attempts(seed: int, flow: Flow, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When kafka-python tries to connect to a cluster that nobody answers for."""
    found: list[float] = []
    with virtual_time(seed) as world:

        async def refuse(*_: object, **__: object) -> None:
            found.append(world.now)
            raise kafka_errors.KafkaConnectionError("Connection refused")

        monkeypatch.setattr(connections, "connected_socket", refuse)
        loop = EventLoop()
        connection = ClusterConnection(loop, flow.target, ClientRole.PRODUCER)
        with pytest.raises(ClusterUnreachable):
            loop.run(connection.open)
        assert world.now == pytest.approx(BOOTSTRAP_MILLISECONDS / 1_000, abs=1.0)
        connection.close()
        loop.close()
    return found


def test_kafka_python_waits_and_draws_as_the_world_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1, b:2\nA->B.enabled = true\n")
    flow = load_config(config).flow("A->B")
    first = attempts(1, flow, monkeypatch)
    assert len(first) > 5
    assert attempts(1, flow, monkeypatch) == first
    assert attempts(2, flow, monkeypatch) != first, "its pauses are random"


def test_kafka_python_asks_the_modules_that_the_world_replaces() -> None:
    """A function that one of its modules had taken out of them would stay the real one."""
    modules = {name: vars(module) for name, module in sys.modules.items() if name.startswith("kafka.")}
    assert {name for name, module in modules.items() if module.get("time") is time} >= {
        f"kafka.{name}" for name in ("cluster", "net.connection", "net.inet", "net.manager", "net.selector", "net.transport", "util")
    }
    real = {id(value) for module in (time, random) for name, value in vars(module).items() if name[0] != "_" and callable(value)}
    assert [(name, key) for name, module in modules.items() for key, value in module.items() if id(value) in real] == []
    with virtual_time(1):
        assert [name for name, module in modules.items() if module.get("time") is time or module.get("random") is random] == []
