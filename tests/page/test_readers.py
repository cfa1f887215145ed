"""Reader processes: ended when they take too long, replaced when they die, gone when the server is; no secret in sight."""

from __future__ import annotations

import io
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.waiting import NEVER_SECONDS, until

from ferry.config import Flow, load_config
from ferry.page.problem import Problem
from ferry.page.readers import Reader, Readers
from ferry.page.reads import ReadName, ReadRequest, read_request

pytestmark = pytest.mark.faults

PASSWORD = secrets.token_hex(8)
# Below the patience of a client, and enough beside other work.


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    server = socket.create_server(("127.0.0.1", 0))
    taken = []
    thread = threading.Thread(target=lambda: taken.extend(iter(lambda: _accept(server), None)), daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.close()
    for connection in taken:
        connection.close()


def _accept(server: socket.socket) -> socket.socket | None:
    try:
        return server.accept()[0]
    except OSError:
        return None


def written(path: Path, servers: str, password: str) -> Flow:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    lines = [
        "clusters = A, B",
        f"A.bootstrap.servers = {servers}",
        "B.bootstrap.servers = 127.0.0.1:1",
        *(f"{alias}.security.protocol = SASL_PLAINTEXT" for alias in "AB"),
        *(f"{alias}.sasl.mechanism = PLAIN" for alias in "AB"),
        f'A.sasl.jaas.config = {module} required username="u" password="{password}";',
        f'B.sasl.jaas.config = {module} required username="u" password="{PASSWORD}";',
        "A->B.enabled = true",
        "config.providers = env",
        "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    ]
    path.write_text("\n".join(lines), encoding="latin-1")
    return load_config(path).flows[0]


@pytest.fixture
def flow(tmp_path: Path, hanging: str) -> Flow:
    """Its source hangs."""
    return written(tmp_path / "mm2.properties", hanging, PASSWORD)


@pytest.fixture
def unready(tmp_path: Path) -> Flow:
    """A read of it fails at once."""
    return written(tmp_path / "unready.properties", "127.0.0.1:2", "${env:FERRY_SET_NOWHERE}")


@pytest.fixture
def readers() -> Iterator[Readers]:
    found = Readers()
    yield found
    for reader in found._idle:
        reader.end()


def processes() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # one that is just ending; a zombie is one of these
            if "ferry.page.reader_process" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_a_read_that_takes_too_long_is_ended_with_its_process(flow: Flow, readers: Readers) -> None:
    data, problem, _ = readers.read(ReadRequest(ReadName.OVERVIEW, flow), 2.0)
    assert data is None
    assert problem == Problem("ReadTimedOut", "reading overview of A->B did not end within 2 s", problem.next_step if problem else "")
    assert problem is not None
    assert problem.unreachable
    assert not processes()


def test_a_crash_is_told_and_the_next_read_has_another_process(flow: Flow, unready: Flow, readers: Readers) -> None:
    answers = []
    asking = threading.Thread(target=lambda: answers.append(readers.read(ReadRequest(ReadName.OVERVIEW, flow), 60.0)))
    asking.start()
    until(lambda: bool(processes()))
    (process,) = processes()
    assert PASSWORD not in " ".join(process.cmdline())
    assert PASSWORD not in str(process.environ())
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGABRT)
    asking.join(NEVER_SECONDS)
    (_, problem, _) = answers[0]
    assert problem is not None
    assert (problem.error, problem.message) == ("ReaderDied", "reading overview of A->B: its process ended by SIGABRT")
    _, problem, _ = readers.read(ReadRequest(ReadName.GROUP, unready, "billing"), 60.0)
    assert problem is not None
    assert problem.error == "ConfigError"
    assert len(processes()) == 1


def test_an_error_of_the_read_travels_and_the_process_stays(unready: Flow, readers: Readers) -> None:
    pids = set()
    for _ in range(2):
        _, problem, _ = readers.read(ReadRequest(ReadName.GROUP, unready, "billing"), 60.0)
        assert problem is not None
        assert problem.error == "ConfigError"
        assert "FERRY_SET_NOWHERE" in problem.message
        assert problem.next_step
        assert PASSWORD not in str(problem)
        pids |= {process.pid for process in processes()}
    assert len(pids) == 1


def test_an_idle_process_ends_after_a_while(monkeypatch: pytest.MonkeyPatch, unready: Flow) -> None:
    monkeypatch.setattr("ferry.page.readers.IDLE_SECONDS", 0.3)
    _, problem, _ = Readers().read(ReadRequest(ReadName.GROUP, unready, "billing"), 60.0)
    assert problem is not None
    until(lambda: not processes())


def test_a_process_does_not_outlive_the_server(flow: Flow, tmp_path: Path) -> None:
    """Even one whose read hangs: a server that is killed cannot end it."""
    program = (
        "import sys, threading, time; from ferry.config import load_config\n"
        "from ferry.page.reads import ReadName, ReadRequest; from ferry.page.readers import Reader\n"
        "reader = Reader(); print(reader._process.pid, flush=True)\n"
        "reader.read(ReadRequest(ReadName.OVERVIEW, load_config(sys.argv[1]).flows[0]), 60.0)\n"
    )
    server = subprocess.Popen([sys.executable, "-c", program, str(flow.source.path)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    time.sleep(1.0)
    assert psutil.pid_exists(pid)
    server.kill()
    server.wait(NEVER_SECONDS)
    server.stdout.close()
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_server_that_ends_in_the_middle_of_a_request_is_gone(unready: Flow) -> None:
    request = ReadRequest(next(iter(ReadName)), unready)
    frame = pickle.dumps(request)
    assert read_request(io.BufferedReader(io.BytesIO(frame))) == request
    for size in (0, 1, len(frame) // 2, len(frame) - 1):
        assert read_request(io.BufferedReader(io.BytesIO(frame[:size]))) is None


def test_output_of_the_process_does_not_become_an_answer(unready: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('loaded a plug-in', flush=True)\n", encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    reader = Reader()
    try:
        _, problem, _ = reader.read(ReadRequest(ReadName.GROUP, unready, "billing"), 60.0)
        assert problem is not None
        assert problem.error == "ConfigError"
    finally:
        reader.end()
