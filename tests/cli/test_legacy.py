"""`ferry legacy`: MirrorMaker 1's command line copies records under their names; what is wrong with it is told by option or file."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli import inside
from tests.conftest import Lab
from tools.kafka import read_all

from ferry.config import load_config
from ferry.errors import ExitCode

FERRY = Path(sys.executable).with_name("ferry")
HANDLER = """
from dataclasses import replace


class Marked:
    def __init__(self, args):
        self.mark = args.encode()

    def handle(self, record):
        return [] if record.value == b"3" else [replace(record, value=record.value + self.mark)]
"""


def ferry(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    places = [str(path)] if path else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")])}
    return subprocess.run([FERRY, *arguments], env=environment, check=False, capture_output=True, text=True, timeout=120)


@pytest.fixture
def options(tmp_path: Path) -> Callable[..., list[str]]:
    """The client files between two addresses, and the options that name them."""
    alias = f"s{secrets.token_hex(4)}"

    def write(source: str, target: str) -> list[str]:
        (tmp_path / "consumer.properties").write_text(f"bootstrap.servers={source}\ngroup.id=mirror\nauto.offset.reset=earliest\n")
        (tmp_path / "producer.properties").write_text(f"bootstrap.servers={target}\nacks=all\n")
        clients = ["--consumer.config", str(tmp_path / "consumer.properties"), "--producer.config", str(tmp_path / "producer.properties")]
        return ["legacy", *clients, "--source.alias", alias]

    return write


@pytest.mark.long
@pytest.mark.brokers
def test_two_runs_the_second_in_spark_with_a_handler(options: Callable[..., list[str]], tmp_path: Path, lab: Lab) -> None:
    topic, other = lab.topic(lab.source, partitions=2), lab.topic(lab.source)
    lab.produce(lab.source, topic, [(number % 2, None, b"%d" % number) for number in range(10)])
    lab.produce(lab.source, other, [(0, None, b"not wanted")])
    common = [*options(lab.source.bootstrap, lab.target.bootstrap), "--json"]
    first = ferry(*common, "--whitelist", f'"{topic}"', "--master", "inline", "--new.consumer")
    assert first.returncode == ExitCode.DONE, first.stderr
    assert "--new.consumer has no effect" in first.stderr
    assert json.loads(first.stdout)["totals"]["records"] == 10
    lab.produce(lab.source, topic, [(0, None, b"3"), (0, None, b"4")])
    (tmp_path / "marking.py").write_text(HANDLER)
    extra = ["--include", topic, "--message.handler", "marking:Marked", "--message.handler.args", " once", "--num.streams", "1"]
    second = ferry(*common, *extra, path=tmp_path)
    assert second.returncode == ExitCode.DONE, second.stderr
    (entry,) = json.loads(second.stdout)["partitions"]
    assert (entry["remote_topic"], entry["records"], entry["dropped"], entry["handled"]) == (topic, 1, 1, 1)
    copies = read_all(lab.target.bootstrap, topic)
    assert [[record.value for record in side] for side in copies] == [
        [b"0", b"2", b"4", b"6", b"8", b"4once"],
        [b"1", b"3", b"5", b"7", b"9"],
    ]


@pytest.mark.unit
def test_saved_options_are_a_config_for_every_command(options: Callable[..., list[str]], tmp_path: Path) -> None:
    saved = tmp_path / "mirror one.properties"
    done = inside.ferry(*options("west:9092", "east:9092"), "--include", r"or\d+=x, pay.*", "--num.streams", "4", "--save", str(saved))
    assert done.returncode == ExitCode.DONE, done.stderr
    (flow,) = load_config(saved).flows
    assert (flow.topics, flow.tasks_max, flow.source.bootstrap) == ((r"or\d+=x", "pay.*"), 4, "west:9092")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ((), "ferry: ArgumentError: --include: is missing"),
        (("--include", "["), "ferry: ArgumentError: --include: "),
        (("--include", "x", "--blacklist", "y"), "ferry: ArgumentError: --blacklist: "),
        (("--include", "x", "--num.streams", "0"), "ferry: ArgumentError: --num.streams: must be a whole number from 1"),
        (
            ("--include", "x", "--message.handler", "com.acme.Handler"),
            "--message.handler: com.acme.Handler must be written as package.module:Class",
        ),
    ],
)
def test_bad_options(options: Callable[..., list[str]], tmp_path: Path, extra: tuple[str, ...], problem: str) -> None:
    done = inside.ferry(*options("west:9092", "east:9092"), *extra, "--save", str(tmp_path / "saved"))
    assert done.returncode == ExitCode.BAD_INPUT
    assert problem in done.stderr
    assert not (tmp_path / "saved").exists()


@pytest.mark.unit
@pytest.mark.parametrize("option", ["--save", "--report"])
def test_a_file_that_cannot_be_written(options: Callable[..., list[str]], tmp_path: Path, option: str) -> None:
    done = inside.ferry(*options("west:9092", "east:9092"), "--include", "x", option, str(tmp_path / "none" / "file"))
    assert done.returncode == ExitCode.BAD_INPUT
    assert (
        done.stderr.splitlines()[-1] == f"ferry: ArgumentError: {option} {tmp_path}/none/file: cannot be written: No such file or directory"
    )


@pytest.mark.unit
def test_a_bad_client_file_is_named(options: Callable[..., list[str]], tmp_path: Path) -> None:
    arguments = options("west:9092", "east")
    done = inside.ferry(*arguments, "--include", "x")
    assert done.returncode == ExitCode.BAD_INPUT
    assert done.stderr.splitlines()[-1].startswith(f"ferry: ConfigError: {tmp_path}/producer.properties:1: bootstrap.servers: must be")
