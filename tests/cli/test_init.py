"""`ferry init` against real clusters: by options, and asked at a real terminal."""

from __future__ import annotations

import json
import secrets
import signal
import stat
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
from ferry.sandbox.ports import free_ports

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")
TopicFactory = Callable[..., str]
ClusterFactory = Callable[..., SandboxCluster]


def ferry(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(FERRY), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def aliases() -> list[str]:
    """Of this test's own: no two tests share internal topics."""
    return ["--source-alias", f"a{secrets.token_hex(4)}", "--target-alias", f"b{secrets.token_hex(4)}"]


def test_by_options(lab: Lab, aliases: list[str], tmp_path: Path) -> None:
    topic = lab.topic(lab.source)
    sides = ["--source", lab.source.bootstrap, "--target", lab.target.bootstrap, *aliases]
    done = ferry("init", "--no-input", *sides, "--topics", topic, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document, file = json.loads(done.stdout), tmp_path / "mm2.properties"
    assert (document["file"], document["flow"], document["warnings"]) == ("mm2.properties", f"{aliases[1]}->{aliases[3]}", [])
    assert {entry["verdict"] for entry in document["findings"]} == {"ok"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    loaded = load_config(file)
    assert (loaded.warnings, loaded.flows[0].topics, loaded.flows[0].replication_factor) == ((), (topic,), 1)
    plan = ferry("plan", file, "--flow", document["flow"], "--json", cwd=tmp_path)
    assert (plan.returncode, plan.stderr) == (0, "")
    created = {entry["remote_topic"] for entry in json.loads(plan.stdout)["topics"]["create"]}
    assert created - {f"{aliases[1]}.heartbeats"} == {f"{aliases[1]}.{topic}"}  # other tests may have left heartbeats

    before = file.read_text()
    again = ferry("init", "--no-input", *sides, cwd=tmp_path)
    assert (again.returncode, "--force" in again.stderr, file.read_text()) == (ExitCode.BAD_INPUT, True, before)
    forced = ferry("init", "--no-input", "--force", "--no-test", *sides, "--schedule", "0 6 * * *", cwd=tmp_path)
    assert (forced.returncode, load_config(file).flows[0].schedule) == (0, "0 6 * * *")
    assert [path.name for path in tmp_path.iterdir()] == ["mm2.properties"]


@pytest.mark.long
def test_wrong_options_leave_no_file(source_cluster: SandboxCluster, tmp_path: Path) -> None:
    here, nowhere = source_cluster.bootstrap, f"127.0.0.1:{free_ports(1)[0]}"
    login = ["--target-protocol", "SASL_PLAINTEXT", "--target-mechanism", "PLAIN", "--target-user", "me", "--target-password"]
    cases: list[tuple[list[str], ExitCode, str]] = [
        (["--source", here, "--target", f"{here}, {nowhere}"], ExitCode.BAD_INPUT, "to itself"),
        (["--source", nowhere, "--target", here], ExitCode.UNREACHABLE, "connection refused"),
        (["--no-test", "--source", here], ExitCode.BAD_INPUT, "--target is needed"),
        (["--no-test", "--source", "nonsense", "--target", here], ExitCode.BAD_INPUT, "host:port"),
        (["--no-test", "--source", here, "--target", nowhere, *login, "hunter2"], ExitCode.BAD_INPUT, "can be seen by others"),
        (["--source", here, "--target", nowhere, *login, "${env:FERRY_NO_SUCH}"], ExitCode.BAD_INPUT, "no variable FERRY_NO_SUCH"),
    ]
    for arguments, code, told in cases:
        done = ferry("init", "--no-input", *arguments, cwd=tmp_path)
        assert (done.returncode, told in done.stderr, done.stdout) == (code, True, ""), done.stderr
        assert "hunter2" not in done.stderr
        assert "ferry-init-" not in done.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_asked_at_a_terminal(source_cluster: SandboxCluster, cluster_factory: ClusterFactory, tmp_path: Path) -> None:
    password = f'p"w\\{secrets.token_hex(6)}'
    guarded = cluster_factory(users={"admin": password})
    file = tmp_path / "mm2.properties"
    conversation = [
        ("What to call the source .*: ", ""),
        ("Servers of A .*: ", "nonsense"),
        ("is no list of servers.*\\s+Servers of A .*: ", f"127.0.0.1:{free_ports(1)[0]}"),
        ("security.protocol of A .*: ", ""),
        ("connection refused.*\\s+Write the file anyway.*: ", "n"),
        ("Servers of A .*: ", source_cluster.bootstrap),
        ("security.protocol of A .*: ", "plaintext"),
        ("What to call the target .*: ", "A"),
        ("the source's.*\\s+What to call the target .*: ", ""),
        ("Servers of B .*: ", guarded.bootstrap),
        ("security.protocol of B .*: ", "SASL_PLAINTEXT"),
        ("sasl.mechanism of B .*: ", "PLAIN"),
        ("User at B.*: ", "admin"),
        ("The password at B.*: ", "write"),
        ("Password.*: ", "wrong"),
        ("Write the file anyway.*: ", "n"),
        ("Servers of B .*: ", guarded.bootstrap),
        ("security.protocol of B .*: ", "SASL_PLAINTEXT"),
        ("sasl.mechanism of B .*: ", "PLAIN"),
        ("User at B.*: ", "admin"),
        ("The password at B.*: ", "write"),
        ("Password.*: ", password),
        ("as admin \\(SASL_PLAINTEXT, PLAIN\\)[\\s\\S]*Topics to copy .*: ", "orders[,pay.*"),
        ("A->B.topics[\\s\\S]*Topics to copy .*: ", "pay.*"),
        ("Schedule .*: ", "often"),
        ("often is not a cron[\\s\\S]*Schedule .*: ", ""),
        ("next: ferry doctor", None),
    ]
    with Terminal([FERRY, "init", file]) as terminal:
        place = 0
        for question, answer in conversation:
            place = terminal.until(question, after=place)
            assert not file.exists() or answer is None
            if answer is not None:
                terminal.press(f"{answer}\n")
        assert terminal.ended() == 0
        assert terminal.restored
        assert password not in terminal.raw
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    loaded = load_config(file)
    assert (loaded.warnings, loaded.flows[0].topics) == ((), ("pay.*",))


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_leaves_nothing(way: signal.Signals, source_cluster: SandboxCluster, tmp_path: Path) -> None:
    trials, home = tmp_path / "trials", tmp_path / "home"
    trials.mkdir()
    home.mkdir()
    source = ["--source", source_cluster.bootstrap, "--source-protocol", "PLAINTEXT", "--source-alias", "A"]
    with Terminal([FERRY, "init", home / "mm2.properties", *source], {"TMPDIR": str(trials)}) as terminal:
        if way is signal.SIGINT:
            terminal.until("What to call the target .*: ")
            terminal.press("\x03")
        else:
            terminal.until("trying ")
            terminal.process.send_signal(way)
        assert terminal.ended() not in {0, -way}
        assert terminal.restored
        assert "Traceback" not in terminal.shown
    assert (list(home.iterdir()), list(trials.iterdir())) == ([], [])
