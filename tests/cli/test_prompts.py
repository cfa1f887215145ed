"""Questions of `ferry init`, without clusters: what is refused when it is answered, and what nobody answers."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from tests.cli.terminal import Terminal
from tests.waiting import NEVER_SECONDS

from ferry.cli import init_dialog
from ferry.cli.init_dialog import InitDialog, SideOptions
from ferry.cli.new_file import check_new_file
from ferry.cli.prompts import Asker
from ferry.config.first_file import FirstFile
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.ending import interrupted_by_signals, temporary_directory
from ferry.errors import ArgumentError, ConfigError, ExitCode

pytestmark = pytest.mark.unit

FERRY = Path(sys.executable).with_name("ferry")
LOGIN = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN"}
PASSWORD = "hunter2${part:of}it"
Told = Callable[..., tuple[FirstFile, str]]


class Interrupted(io.StringIO):
    """A keyboard at which Ctrl-C is pressed."""

    def readline(self, _: int | None = -1) -> str:
        raise KeyboardInterrupt


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Told:
    """Asks, with these answers typed one after the other; what it gives, and what was told."""

    def converse(source: SideOptions, target: SideOptions, *answers: str) -> tuple[FirstFile, str]:
        typed = iter(answers)
        monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(typed))
        found = InitDialog(tmp_path / "mm2.properties", Asker(no_input=False), tests=False).ask(source, target, "x", "")
        assert next(typed, None) is None
        return found, capsys.readouterr().err

    return converse


def side(name: str, servers: str, **given: str) -> SideOptions:
    return SideOptions(name, servers, name[0].upper(), given.pop("protocol", "PLAINTEXT"), **given)


def test_servers_are_checked_when_they_are_answered(conversation: Told) -> None:
    answers, told = conversation(side("source", "a:70000"), side("target", "b:9, a:1"), "a:0", "a:1,b:9", "b:9", "c:9")
    assert (answers.source.servers, answers.target.servers) == ("a:1,b:9", "c:9")
    assert [word in told for word in ("a:70000 is no list", "a:0 is no list", "b:9, a:1 is the source", "  b:9 is the source")] == [
        True
    ] * 4


def test_wrong_servers_by_options_are_an_error_without_input(tmp_path: Path) -> None:
    trial = InitDialog(tmp_path / "mm2.properties", Asker(no_input=True), tests=False)
    with pytest.raises(ArgumentError, match="--target: a:1 is the source"):
        trial.ask(side("source", "a:1"), side("target", "a:1"), "x", "")
    with pytest.raises(ArgumentError, match=r"--source: \[::1\]:65536 is no list of servers: .*ports from 1 to 65535"):
        trial.ask(side("source", "[::1]:65536"), side("target", "a:1"), "x", "")


def test_a_password_that_would_be_resolved_is_refused_and_not_shown(conversation: Told) -> None:
    answers, told = conversation(side("source", "a:1", **LOGIN, user="${env:ME}"), side("target", "b:1"), "me", "write", PASSWORD, "good$")
    assert (answers.source.user, answers.source.password) == ("me", "good$")
    assert ("answer env or file" in told, "hunter2" in told, "part" in told) == (True, False, False)


def test_an_error_that_no_answer_can_correct_names_the_file_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mm2.properties"
    trial = InitDialog(file, Asker(no_input=False), tests=False)
    monkeypatch.setattr(init_dialog, "_servers", lambda text, **_: text)
    with pytest.raises(ConfigError) as caught:
        trial.ask(side("source", "a:1"), side("target", "a:1"), None, "")
    assert str(caught.value).startswith(f"{file}: T.bootstrap.servers: has a server of cluster S")


def test_both_clusters_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    gone = ConfigError("no such login")
    monkeypatch.setattr(init_dialog, "read_cluster_facts", lambda cluster: ClusterFacts(cluster.alias, "", "", gone))
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    monkeypatch.setattr(init_dialog.InitDialog, "_offer_topics", lambda *_: ())
    trial = InitDialog(tmp_path / "mm2.properties", Asker(no_input=False))
    answers = trial.ask(side("source", "a:1"), side("target", "b:1"), "x", "")
    assert (answers.flow, "ferry-init-" in capsys.readouterr().err) == ("S->T", False)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker(no_input=False)
    for ask in (lambda: asker.ask("Servers", "--source", None), lambda: asker.agree("Sure?", "--source", default=False)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        with pytest.raises(ArgumentError, match="give --source, or --no-input"):
            ask()
        monkeypatch.setattr(sys, "stdin", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            ask()


def test_without_a_keyboard(tmp_path: Path) -> None:
    done = subprocess.run(
        [FERRY, "init"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=NEVER_SECONDS, check=False
    )
    assert (done.returncode, "--no-input" in done.stderr, "Aborted" in done.stderr) == (ExitCode.BAD_INPUT, True, False)


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_at_a_question(way: signal.Signals, tmp_path: Path) -> None:
    with Terminal([FERRY, "init", tmp_path / "mm2.properties"]) as terminal:
        terminal.until("What to call the source .*: ")
        if way is signal.SIGINT:
            terminal.press("\x03")
        else:
            terminal.process.send_signal(way)
        assert terminal.ended() == 130


def test_signals_that_are_ignored_stay_ignored() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with interrupted_by_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_signal_leaves_no_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with interrupted_by_signals(), pytest.raises(KeyboardInterrupt), temporary_directory("ferry-"):
        signal.raise_signal(signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []

    removed = shutil.rmtree

    def interrupted(directory: Path, **options: bool) -> None:
        signal.raise_signal(signal.SIGTERM)
        removed(directory, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with interrupted_by_signals(), pytest.raises(KeyboardInterrupt), temporary_directory("ferry-"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_read_is_an_error_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no directory in which you may write"):
        check_new_file(tmp_path / ("x" * 300) / "mm2.properties", force=False)
    check_new_file(tmp_path / ("x" * 300), force=False)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match="exists already"):
        check_new_file(tmp_path / "link", force=False)
    with pytest.raises(ArgumentError, match="is no file that you can read"):
        Asker(no_input=True).ask("File", "--source-truststore", "x" * 300, check=init_dialog._existing_file)
