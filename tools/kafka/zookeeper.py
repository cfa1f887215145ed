"""The ZooKeeper of a cluster whose release needs one: one process beside the broker, in the cluster's own directory.

It outlives kills of the broker, as it would elsewhere, and ends when the cluster is stopped.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from pathlib import Path

import psutil
from tools.kafka.guard import guard

from ferry.sandbox.broker_process import SandboxFailed, find_process, kill_all
from ferry.sandbox.jars import java
from ferry.sandbox.ports import listens

ZOOKEEPER_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
PROPERTIES_FILE = "zookeeper.properties"
JAVA_OPTIONS = ("-Xms32m", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Up in about a second; a loaded machine may need several times that.
START_SECONDS = 60.0
POLL_SECONDS = 0.05
# A broker that was killed is registered until its session ends, and one that comes back before that ends itself.
SESSION_SECONDS = 30.0
ANSWER_SECONDS = 5.0
REGISTERED = b"/brokers/ids/"

# Children of this process: they must be waited for when they end.
_children: dict[Path, subprocess.Popen[bytes]] = {}


def zookeeper_settings(port: int) -> dict[str, str]:
    """What a broker's server.properties says of its ZooKeeper, which listens on `port`."""
    return {
        "broker.id": "1",
        "zookeeper.connect": f"127.0.0.1:{port}",
        # A broker that was killed is not let in again before its last session ended; ten of ZooKeeper's ticks.
        "zookeeper.session.timeout.ms": "5000",
        "zookeeper.connection.timeout.ms": "30000",
    }


def run_zookeeper(directory: Path, port: int, jars: Path, *, detached: bool) -> None:
    """Start it on that port unless it runs; returns when it listens. SandboxFailed otherwise."""
    properties = directory / PROPERTIES_FILE
    if find_process(properties, ZOOKEEPER_CLASS) is not None:
        _wait_for_the_last_session(port)
        return
    settings = {
        "dataDir": str(directory / "zookeeper"),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        "tickTime": "500",
        "4lw.commands.whitelist": "dump",
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="latin-1")
    if not detached:
        guard.watch(properties)
    command = [java(), *JAVA_OPTIONS, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*", ZOOKEEPER_CLASS]
    with (directory / "zookeeper.log").open("ab") as log:
        process = subprocess.Popen([*command, str(properties)], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    _children[properties] = process
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if listens(port):
            return
        time.sleep(POLL_SECONDS)
    stop_zookeeper(directory)
    raise SandboxFailed(f"ZooKeeper does not listen on {port}: see {directory / 'zookeeper.log'}")


def stop_zookeeper(directory: Path) -> None:
    """End it, if it runs. Nothing of it is kept in memory only, so it is killed."""
    properties = directory / PROPERTIES_FILE
    if properties.exists():
        with contextlib.suppress(psutil.NoSuchProcess):
            kill_all(properties, (ZOOKEEPER_CLASS,))
    if child := _children.pop(properties, None):
        child.wait()


def _wait_for_the_last_session(port: int) -> None:
    deadline = time.monotonic() + SESSION_SECONDS
    while time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as connection:
            connection.sendall(b"dump")
            found = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        if REGISTERED not in found:
            return
        time.sleep(POLL_SECONDS)
