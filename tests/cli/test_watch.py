"""`ferry watch` at a real terminal and in a pipe, with clusters that go away and come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.conftest import Lab
from tools.kafka import SandboxCluster

from ferry.config import load_config
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")
ConfigFile = Callable[..., Path]
TopicFactory = Callable[..., str]
ClusterFactory = Callable[..., SandboxCluster]
Produce = Callable[..., None]
RunFlow = Callable[..., object]


@pytest.mark.long
def test_at_a_terminal(
    config_file: ConfigFile,
    copy_only: tuple[str, ...],
    cluster_factory: ClusterFactory,
    topic_factory: TopicFactory,
    produce: Produce,
    run_flow: RunFlow,
) -> None:
    source = cluster_factory()
    topic = topic_factory(source)
    path = config_file(f"A->B.topics = {topic}", *copy_only, source=source)
    flow = load_config(path).flows[0]
    produce(source, topic, [(0, b"k", b"v")] * 1234)
    with Terminal([FERRY, "watch", path, "--interval", "1"]) as terminal:
        place = terminal.until(f"{flow.name}: never ran")
        place = terminal.until(rf"lag\s+1,234 records[\s\S]*{topic}\s+1,234", after=place)
        run_flow(flow)
        place = terminal.until(f"{flow.name}: up to date", after=place)
        source.kill()
        place = terminal.until(f"{flow.name}: no answer[\\s\\S]*{source.bootstrap}", after=place)
        source.run()
        place = terminal.until("answers again after", after=place)
        assert terminal.settings(terminal.slave) != terminal.before, "keys are read one by one"
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.restored
        assert "\x1b[?1049h" in terminal.raw
        assert terminal.raw.rindex("\x1b[?1049l") > terminal.raw.rindex("\x1b[?1049h"), "the first screen is back"
        assert "Traceback" not in terminal.shown


@pytest.mark.long
def test_left_while_a_cluster_hangs(config_file: ConfigFile, cluster_factory: ClusterFactory) -> None:
    source = cluster_factory()
    path = config_file("A->B.topics = x", source=source)
    command = [FERRY, "watch", path, "-n", "1"]
    with Terminal(command) as one, Terminal(command) as other:
        for terminal in (one, other):
            terminal.until(": never ran")
        source.pause()
        try:
            one.read(2.0)
            one.press("\x03")
            other.process.send_signal(signal.SIGTERM)
            other.read(3.0)
            assert (one.process.poll(), other.process.poll()) == (0, 0), "they do not wait for the cluster"
        finally:
            source.resume()
        for terminal in (one, other):
            terminal.read(0.2)
            assert terminal.restored
            assert "Traceback" not in terminal.shown


def test_in_a_pipe(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    lab.produce(lab.source, topic, [(0, b"k", b"v")] * 7)
    path = lab.config(f"A->B.topics = {topic}")
    name = load_config(path).flows[0].name
    once = subprocess.run([FERRY, "watch", path, "--once"], capture_output=True, text=True, timeout=120, check=False)
    assert (once.returncode, once.stdout.count("\n")) == (0, 1), once.stderr
    assert f" {name} never ran: nothing was copied yet; 7 records behind" in once.stdout
    with subprocess.Popen(
        [FERRY, "watch", path, "--json", "-n", "1"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        frames = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert [(entry["version"], entry["flow"], entry["lag_records"]) for entry in frames] == [(1, name, 7)] * 2
    assert (frames[0]["copied_rate"], frames[1]["copied_rate"]) == (None, 0.0)


@pytest.mark.long
def test_once_with_a_cluster_that_does_not_answer(lab: Lab) -> None:
    gone = SandboxCluster("gone", Path(), 1, 0)
    done = subprocess.run(
        [FERRY, "watch", lab.config("A->B.topics = x", target=gone), "--once"],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == ExitCode.UNREACHABLE
    assert "no answer since" in done.stdout
    assert "127.0.0.1:1" in done.stdout
