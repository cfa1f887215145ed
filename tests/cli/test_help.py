"""What a newcomer sees: commands in the order of use, every option explained, spelling mistakes answered with what was meant."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.inside import ferry
from typer.main import get_command
from typer.testing import CliRunner

from ferry import __version__
from ferry.cli import copies
from ferry.cli.main import app
from ferry.config.keys import nearest_name

pytestmark = pytest.mark.unit

CONFIG = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA->B.topics = orders\n"


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Told by their `commands`: typer brings its own copy of click."""
    if hasattr(command, "commands"):
        for part, inner in command.commands.items():
            yield from commands(inner, f"{name} {part}")
    else:
        yield name, command


COMMANDS = dict(commands(get_command(app), "ferry"))


def test_help_and_completion_load_no_client_library() -> None:
    loaded = "import sys, ferry.cli.main; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert "ferry.cli.main" in modules
    assert not {"ferry.config", "kafka", "confluent_kafka", "pyspark", "airflow"} & set(modules)


def test_it_tells_its_version_and_short_help() -> None:
    assert ferry("--version").stdout == f"ferry {__version__}\n"
    assert "Show what a run would do" in ferry("plan", "-h").stdout


@pytest.mark.parametrize("arguments", [(), ("status",), ("failover",), ("client",)])
def test_a_flag_shows_no_type(arguments: tuple[str, ...]) -> None:
    shown = ferry(*arguments, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown


def test_an_interrupted_command_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(copies, "load_flow", interrupted)
    for command, goes_on in (("run", True), ("plan", False)):
        done = ferry(command, "mm2.properties", "--flow", "A->B")
        assert (done.returncode, "what was committed stays" in done.stderr, "interrupted" in done.stderr) == (130, goes_on, True)


def test_commands_stand_in_panels_in_the_order_of_use() -> None:
    shown = CliRunner().invoke(app, [], env={"COLUMNS": "120"}).output
    panels = re.findall(r"^╭─ (.+?) ─", shown, flags=re.MULTILINE)
    assert panels[:5] == ["Options", "Set up", "Copy", "Look", "Consumer groups"]
    assert "Commands" not in panels, "a command without a panel"
    order = [shown.index(f"│ {name} ") for name in ("init", "doctor", "plan", "run", "status", "translate", "seed")]
    assert order == sorted(order)
    assert "First steps: ferry init" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_is_explained(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert [parameter.name for parameter in command.params if not parameter.help and parameter.name != "help"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["stauts"], "Did you mean 'status'"),
        (["run", "{config}", "--flw", "x"], "--flow"),
        (["plan", "{config}", "--flow", "a->b"], "did you mean A->B?"),
        (["plan", "{config}", "--flow", "A-"], "Quote it for the shell: --flow 'A->B'"),
        (["client", "{config}", "--cluster", "b", "heartbeat-topics"], "did you mean B?"),
        (["sync", "{config}", "--flow", "A->B", "topic"], "'topics'"),
        (["run"], "Missing argument 'CONFIG'"),
    ],
)
def test_spelling_mistakes(arguments: list[str], told: str, tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    done = ferry(*(argument.format(config=config) for argument in arguments))
    assert (done.returncode, told in " ".join(done.stderr.replace("│", " ").split())) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("acounts", ["orders", "accounts"], "; did you mean accounts?"),
        ("ORDERS", ["orders", "accounts"], "; did you mean orders?"),
        ("zzz", ["orders", "accounts"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_name(name: str, names: list[str], hint: str) -> None:
    assert nearest_name(name, names) == hint
