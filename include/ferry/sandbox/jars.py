"""Apache Kafka's jars, resolved once into a cache by the Ivy that ships inside PySpark.

A set of jars becomes visible by a rename, so an interrupted resolution leaves nothing that looks complete; a lock file keeps two processes
from resolving the same set.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ferry.errors import ArgumentError, FerryError

KAFKA_VERSION = "4.3.1"
# The broker's jars bring no SLF4J binding; without one a broker logs nothing.
LOGGING = ("org.slf4j", "slf4j-simple", "1.7.36")
BROKER: Sequence[tuple[str, str, str]] = (("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), LOGGING)
MIRROR_MAKER: Sequence[tuple[str, str, str]] = (
    ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
    LOGGING,
)
# A slow mirror needs minutes, not more.
RESOLVE_SECONDS = 600


class JarsMissing(FerryError):
    """The jars could not be resolved."""


def resolve_jars(name: str = "kafka", coordinates: Sequence[tuple[str, str, str]] = BROKER) -> Path:
    """Directory with the jars of `coordinates` (group, artifact, version) and what they depend on. JarsMissing when it cannot be made."""
    version = "-".join(sorted({coordinate[2] for coordinate in coordinates}))
    directory = cache_directory() / f"{name}-{version}"
    if directory.is_dir():
        return directory
    with _locked(directory.with_suffix(".lock")):
        if not directory.is_dir():
            _resolve(directory, coordinates)
    return directory


def cache_directory() -> Path:
    """`$FERRY_CACHE`, or `~/.cache/ferry`."""
    return Path(os.environ.get("FERRY_CACHE") or Path.home() / ".cache" / "ferry")


def java() -> str:
    """The java to run. ArgumentError naming what to install when there is none."""
    found = shutil.which("java") or (str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if os.environ.get("JAVA_HOME") else None)
    if found is None:
        raise ArgumentError("java is not installed: install Java 17 or newer (Debian, Ubuntu: openjdk-17-jre-headless), or set JAVA_HOME")
    return found


def _resolve(directory: Path, coordinates: Sequence[tuple[str, str, str]]) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        for group, artifact, version in coordinates:
            command = [java(), "-jar", str(_ivy()), "-dependency", group, artifact, version, "-confs", "default"]
            command += ["-retrieve", f"{scratch}/jars/[artifact]-[revision].[ext]"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False, cwd=scratch)
            if done.returncode or "UNRESOLVED DEPENDENCIES" in done.stdout:
                tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
                raise JarsMissing(f"{group}:{artifact}:{version} could not be downloaded; is there a network? Ivy said:\n{tail}")
        (Path(scratch) / "jars").rename(directory)


def _ivy() -> Path:
    specification = importlib.util.find_spec("pyspark")
    if specification is None or not specification.submodule_search_locations:
        raise JarsMissing("pyspark is not installed: its Ivy resolves Kafka's jars")
    jars = sorted(Path(specification.submodule_search_locations[0]).glob("jars/ivy-*.jar"))
    if not jars:
        raise JarsMissing("pyspark has no Ivy jar: install the full pyspark, not pyspark-client alone")
    return jars[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
