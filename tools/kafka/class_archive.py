"""The classes of the broker, parsed once and mapped into memory ever after (JEP 350): a cluster starts with half the CPU time.

The first cluster on a machine writes the archive: it starts one more broker for that, and ends it. The archive becomes visible by a rename.
One that does not fit is ignored by the JVM, and its name says which java and which jars it was made from.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from tools.kafka.guard import guard

from ferry.cache import cache_directory
from ferry.sandbox.broker import JAVA_OPTIONS, LocalBroker
from ferry.sandbox.jars import broker_jars, java
from ferry.sandbox.ports import free_ports
from ferry.sandbox.server_properties import format_storage, new_cluster_id, server_settings, write_settings

# A JVM that has written the archive ends after some seconds; on a loaded machine it may take many times that.
WRITE_SECONDS = 120.0
# An archive that does not fit is no news.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass
class _Writer(LocalBroker):
    """A broker whose JVM writes the archive when it ends."""

    archive: str = ""

    def _java_options(self) -> Sequence[str]:
        return (*JAVA_OPTIONS, f"-XX:ArchiveClassesAtExit={self.archive}", *QUIET)


@cache
def class_archive() -> tuple[str, ...]:
    """JVM options that use the archive, which is written first where there is none; empty where it could not be."""
    path = cache_directory() / f"broker-classes-{made_from()}.jsa"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _write(path)
    return (f"-XX:SharedArchiveFile={path}", *QUIET) if path.exists() else ()


def _write(path: Path) -> None:
    with TemporaryDirectory(dir=path.parent, prefix="writing-") as directory:
        written = Path(directory) / path.name
        port, controller_port = free_ports(2)
        broker = _Writer("writer", Path(directory), port, controller_port, archive=str(written))
        guard.watch(broker.properties_file)
        write_settings(broker.properties_file, server_settings(broker.properties_file, port, controller_port))
        format_storage(broker.properties_file, broker.jars, new_cluster_id())
        broker.run()
        process = psutil.Process(broker.pid)
        process.send_signal(signal.SIGTERM)
        psutil.wait_procs([process], WRITE_SECONDS)
        broker.stop()
        if written.exists():
            written.replace(path)


def made_from() -> str:
    """Names this java and these jars."""
    program = Path(shutil.which(java()) or java()).resolve()
    parts = [f"{path} {path.stat().st_mtime_ns}" for path in (program, broker_jars())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
