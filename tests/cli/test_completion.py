"""Completion as shells ask for it: the script's own protocol, and a real bash at a real terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka.admin
import pytest
from tests.cli.inside import ferry
from tests.cli.terminal import Terminal
from tests.waiting import NEVER_SECONDS

from ferry.cli import completing
from ferry.config import load_config

FERRY = Path(sys.executable).with_name("ferry")
SHELLS = ("bash", "zsh", "fish")
CONFIG = """\
clusters = A, B, C
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
C.bootstrap.servers = 127.0.0.1:3
A->B.enabled = true
A->B.topics = orders, pay.*
A->C.enabled = true
A->C.topics = payments, orders-eu
"""

pytestmark = pytest.mark.unit


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    return path


def offered(shell: str, words: str, **environment: str) -> list[str]:
    """What `shell` is offered for the command line `words`, without descriptions."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)} if shell == "bash" else {"_TYPER_COMPLETE_ARGS": words}
    variables = {**asked, "_FERRY_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args", **environment}
    done = ferry(environment=variables)
    assert done.stderr == ""
    lines = [line.partition("\t")[0] for line in done.stdout.splitlines() if line]
    if shell == "zsh":
        return [] if lines == ["_files"] else [part.split('"')[1] for part in "\n".join(lines).partition("((")[2].splitlines()]
    return lines


@pytest.mark.parametrize("shell", SHELLS)
def test_flows_of_the_file(shell: str, config: Path) -> None:
    quoted = ["'A->B'", "'A->C'"] if shell == "bash" else ["A->B", "A->C"]
    assert offered(shell, f"ferry run {config} --flow ") == quoted
    assert offered(shell, f"ferry status {config} -f 'A->") == ["A->B", "A->C"]


def test_topics_that_the_flow_names(config: Path) -> None:
    assert offered("bash", f"ferry run {config} --flow 'A->C' --topic o") == ["orders-eu"]
    assert offered("bash", f"ferry plan {config} --topic o") == ["orders", "orders-eu"]


def test_clusters_of_the_file(config: Path) -> None:
    assert offered("fish", f"ferry client {config} --cluster ") == ["A", "B", "C"]
    assert offered("fish", f"ferry client {config} --cluster B translate-offsets --source ") == ["A", "B", "C"]
    assert offered("fish", f"ferry client {config} --cluster B remote") == ["remote-topics"]


@pytest.mark.parametrize(
    "words", [("ferry stat", "status"), ("ferry run --fl", "--flow"), ("ferry sync c.properties check", "checkpoints")]
)
def test_commands_options_and_choices(words: tuple[str, str]) -> None:
    line, only = words
    assert offered("bash", line) == [only]


def test_the_file_that_the_environment_names(config: Path) -> None:
    assert offered("fish", "ferry run --flow ", FERRY_CONFIG=str(config)) == ["A->B", "A->C"]


@pytest.mark.parametrize("content", ["clusters = A", "\\u00"])
def test_a_file_that_is_no_config_offers_nothing_and_prints_nothing(content: str, config: Path) -> None:
    config.write_text(content)
    assert offered("bash", f"ferry run {config} --flow ") == []


def test_a_source_that_does_not_answer_offers_no_topics(config: Path) -> None:
    assert offered("bash", f"ferry run {config} --flow 'A->B' --topic pay") == []


def test_several_sources_that_do_not_answer_take_the_time_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(20)]
    lines = [f"clusters = {', '.join(names)}", *(f"{name}.bootstrap.servers = {name}:1" for name in names)]
    path = tmp_path / "mm2.properties"
    path.write_text("\n".join([*lines, *(f"{name}->c0.enabled = true" for name in names[1:])]) + "\n")
    asked: list[str] = []
    given: list[float] = []

    class Dead:
        def __init__(self, settings: dict[str, str]) -> None:
            self.servers = settings["bootstrap.servers"]

        def __enter__(self) -> Dead:
            return self

        def __exit__(self, *_: object) -> None: ...

        def list_topics(self, timeout: float) -> SimpleNamespace:
            asked.append(self.servers)
            given.append(timeout)
            if self.servers == "c2:1":
                return SimpleNamespace(topics=["orders"])
            if self.servers in first:
                beside.wait(NEVER_SECONDS)
            raise TimeoutError

    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Dead)
    monkeypatch.setattr(completing, "TOPICS_SECONDS", NEVER_SECONDS)
    flows = load_config(path).flows
    first = {f"{flow.source.alias}:1" for flow in flows[: completing.MOST_AT_ONCE]} - {"c2:1"}
    beside = threading.Barrier(len(first))
    assert list(completing._topics_of_all(flows)) == ["orders"]
    assert (len(flows), len(asked) >= completing.MOST_AT_ONCE) == (19, True)
    assert not beside.broken  # so many were asked at the same time
    assert len(set(given)) == len(given)  # each has what is left of one limit
    assert max(given) <= NEVER_SECONDS


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script(shell: str) -> None:
    plain, told = ferry("completion", shell).stdout, ferry("completion", shell, "--json").stdout
    assert f"_FERRY_COMPLETE=complete_{shell}" in plain
    assert json.loads(told) == {"version": 1, "shell": shell, "script": plain.rstrip("\n")}


def test_bash_at_a_terminal(config: Path, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    path = os.pathsep.join([str(FERRY.parent), os.environ["PATH"]])
    with Terminal([bash, "--norc", "--noprofile", "-i"], {"PATH": path, "PS1": "> ", "HOME": str(tmp_path)}) as terminal:
        terminal.press('eval "$(ferry completion bash)"; echo re""ady\n')
        place = terminal.until("ready")
        terminal.press(f"ferry status {config} --flow A\t")
        place = terminal.until("'A->", after=place)  # as far as both flows agree
        terminal.press("C\t")
        terminal.until("C' ", after=place)
        terminal.press("\x01echo \n")  # what bash makes of the line
        terminal.until(rf"\n\r?ferry status {config} --flow A->C\r")
