"""Free ports of 127.0.0.1 that stay free until a broker uses them, and after it was killed.

Between the choice of a port and its use by a broker seconds pass. So a process locks the port's byte in a file until the process ends, and
other processes of the user choose other ports.
"""

import fcntl
import os
import secrets
import socket
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from ferry.errors import FerryError

FIRST_PORT = 20_000
LAST_PORT = 60_999
# With fewer ports than this below the range for clients, Ferry uses that range too.
ENOUGH_PORTS = 1_000
ATTEMPTS = 1_000

_given_out: set[int] = set()
_lock = threading.Lock()


class NoFreePort(FerryError):
    """No port is free."""


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens now, if possible below the range that the system gives to clients.

    A port in that range could become the local port of a client while the broker is down. Then the broker could not start again.
    """
    end = _ephemeral_start()
    last = end if end - FIRST_PORT >= ENOUGH_PORTS else LAST_PORT
    found: list[int] = []
    with _lock:
        for _ in range(ATTEMPTS):
            port = FIRST_PORT + secrets.randbelow(last - FIRST_PORT)
            if port not in _given_out and _can_bind(port) and _reserve(port):
                _given_out.add(port)
                found.append(port)
            if len(found) == count:
                return found
    raise NoFreePort(f"no free ports on 127.0.0.1 between {FIRST_PORT} and {last}")


def listens(port: int) -> bool:
    """Whether something accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return 32_768


def _reserve(port: int) -> bool:
    """Whether no other process has reserved it."""
    with suppress(OSError):
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        return True
    return False


@cache
def _reservations() -> int:
    """The file's descriptor. It must stay open: to close it would give up all locks of the process."""
    return os.open(Path(tempfile.gettempdir(), f"ferry-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        # As a broker does it: connections of a killed broker that have not expired yet do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return True
    return False
