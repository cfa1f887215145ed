"""PostgreSQL and Redis, as ordinary processes: each in a directory of its own, on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.waiting import until

from ferry.sandbox.ports import free_ports

# The packages of Debian, and what the tests start of them.
PROGRAMS = {"postgresql": ("initdb", "postgres", "pg_isready"), "redis-server": ("redis-server",)}
# Not on PATH there.
POSTGRESQL_OF_DEBIAN = Path("/usr/lib/postgresql")
# PostgreSQL refuses to run as root. Debian's package has made this user.
UNPRIVILEGED = "postgres"
ANSWER_SECONDS = 5


def missing_packages() -> list[str]:
    return [package for package, names in PROGRAMS.items() if not all(_program(name) for name in names)]


@contextmanager
def postgresql() -> Iterator[str]:
    """An empty database: `user@host:port/name`."""
    port = free_ports(1)[0]
    own: dict[str, Any] = {}
    if os.getuid() == 0:
        own = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": ()}
    # pytest's own directories are closed to other users.
    with TemporaryDirectory(prefix="ferry-postgresql-") as place:
        if own:
            shutil.chown(place, UNPRIVILEGED, UNPRIVILEGED)
        data = [_program("initdb"), "-D", f"{place}/data", "-U", "airflow", "--auth", "trust", "--encoding", "UTF8", "--no-sync"]
        subprocess.run(data, cwd=place, check=True, capture_output=True, **own)
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        command = [_program("postgres"), "-D", f"{place}/data", *(f"--{name}={value}" for name, value in settings.items())]
        asked = [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        with _running(command, Path(place), lambda: subprocess.run(asked, check=False).returncode == 0, own):
            yield f"airflow@127.0.0.1:{port}/postgres"


@contextmanager
def redis() -> Iterator[str]:
    """An empty Redis: `host:port/0`. It writes nothing to disk."""
    port = free_ports(1)[0]

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False

    command = [_program("redis-server"), "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    with TemporaryDirectory(prefix="ferry-redis-") as place, _running(command, Path(place), answers, {}):
        yield f"127.0.0.1:{port}/0"


@contextmanager
def _running(command: Sequence[str], place: Path, answers: Callable[[], bool], own: dict[str, Any]) -> Iterator[None]:
    log = place / "log"
    with log.open("w") as told, subprocess.Popen(command, cwd=place, stdout=told, stderr=told, **own) as server:
        try:
            until(lambda: server.poll() is not None or answers(), log.read_text)
            assert server.poll() is None, log.read_text()
            yield
        finally:
            # Both stop at once, whoever is still connected.
            server.send_signal(signal.SIGINT)


def _program(name: str) -> str:
    """Its path; empty when it is not there."""
    places = [os.environ.get("PATH", ""), *(str(place) for place in sorted(POSTGRESQL_OF_DEBIAN.glob("*/bin"), reverse=True))]
    return shutil.which(name, path=os.pathsep.join(places)) or ""
