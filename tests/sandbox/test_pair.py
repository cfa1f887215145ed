"""`up` keeps what runs, and `down` leaves nothing, whatever interrupted what."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.waiting import NEVER_SECONDS, until
from tools.kafka import read_all

from ferry.config import load_config
from ferry.sandbox.broker_process import find_process
from ferry.sandbox.pair import down, fill, status, up
from ferry.sandbox.sample_data import SampleNotWritten

pytestmark = pytest.mark.brokers

UP = "import sys; from pathlib import Path; from ferry.sandbox.pair import up; up(Path(sys.argv[1]))"
# Java's own start, on a loaded machine.


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A sandbox's directory; nothing of it runs at the end, whatever the test found."""
    yield tmp_path / "sandbox"
    down(tmp_path / "sandbox")


@pytest.mark.long
def test_up_twice_and_down(directory: Path) -> None:
    assert status(directory).source == ""
    assert down(directory).target == ""
    first = up(directory)
    assert up(directory) == first
    assert status(directory) == first
    config = Path(first.config)
    (flow,) = load_config(config).flows
    assert (flow.name, flow.internal_topics_replication_factor) == ("A->B", 1)
    # An edited config stays, and so does the data of a cluster that was killed.
    config.write_text(config.read_text() + "A->B.tasks.max = 3\n")
    psutil.Process(first.source_pid).kill()
    again = up(directory)
    assert (again.source, again.target, again.target_pid) == (first.source, first.target, first.target_pid)
    assert again.source_pid != first.source_pid
    assert "tasks.max = 3" in config.read_text()
    gone = down(directory)
    assert (gone.source, gone.target, gone.config) == ("", "", "")
    assert not psutil.pid_exists(again.source_pid)
    assert not list(directory.iterdir())
    assert status(directory) == gone == down(directory)


@pytest.mark.long
def test_fill_adds_records_and_a_group_that_read_half_of_them(directory: Path) -> None:
    with pytest.raises(SampleNotWritten, match="ferry sandbox up"):
        fill(directory, 100)
    clusters = up(directory)
    for times in (1, 2):
        assert fill(directory, 100).topics["orders-lz4"] == 100
        orders = read_all(clusters.source, "orders-lz4")
        assert sum(map(len, orders)) == 100 * times
        consumer = Consumer({"bootstrap.servers": clusters.source, "group.id": "billing"})
        committed = consumer.committed([TopicPartition("orders-lz4", number) for number in range(len(orders))], timeout=15)
        consumer.close()
        assert [place.offset for place in committed] == [len(partition) // 2 for partition in orders]


def brokers(directory: Path) -> list[psutil.Process]:
    found = [find_process(directory / name / "server.properties") for name in ("A", "B")]
    return [process for process in found if process is not None]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_up_is_cleaned_by_down(directory: Path, number: signal.Signals) -> None:
    interrupted = subprocess.Popen([sys.executable, "-c", UP, str(directory)], stderr=subprocess.DEVNULL)
    until(lambda: brokers(directory))  # a broker's process is there: it cannot answer yet
    interrupted.send_signal(number)
    interrupted.wait(NEVER_SECONDS)
    left = brokers(directory)
    assert left
    down(directory)
    assert not brokers(directory)
    assert psutil.wait_procs(left, NEVER_SECONDS)[1] == []
    assert not list(directory.iterdir())


@pytest.mark.long
def test_up_after_an_interrupted_up_has_both(directory: Path) -> None:
    interrupted = subprocess.Popen([sys.executable, "-c", UP, str(directory)])
    until(lambda: brokers(directory))
    interrupted.kill()
    interrupted.wait(NEVER_SECONDS)
    found = up(directory)
    assert all((found.source, found.target, found.config))
    assert {process.pid for process in brokers(directory)} == {found.source_pid, found.target_pid}
