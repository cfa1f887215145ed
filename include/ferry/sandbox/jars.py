"""Apache Kafka's jars, resolved once into a cache by the Ivy that ships inside PySpark.

A set of jars appears by a rename, so an interrupted download never looks complete. One lock protects the whole cache, because all sets
share Ivy's own cache, and two processes must not write to it at the same time. The name of a directory contains a digest of all its
coordinates, so other coordinates give another set.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ferry.cache import cache_directory
from ferry.errors import ArgumentError, FerryError

Coordinate = tuple[str, str, str]  # group, artifact, version

KAFKA_VERSION = "4.3.1"
# The broker's jars have no SLF4J binding; without one a broker logs nothing.
LOGGING = ("org.slf4j", "slf4j-simple", "1.7.36")
BROKER: Sequence[Coordinate] = (("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), LOGGING)
# A slow mirror needs minutes. Without a time limit, a dead network would block every process that waits for the lock.
RESOLVE_SECONDS = 600


class JarsMissing(FerryError):
    """The jars could not be resolved."""


def broker_jars() -> Path:
    return resolve_jars("kafka", BROKER)


def resolve_jars(name: str, coordinates: Sequence[Coordinate]) -> Path:
    """The directory with these jars and all that they depend on; its name begins with `name`. JarsMissing; ArgumentError without Java."""
    digest = hashlib.sha256("\n".join(":".join(one) for one in sorted(coordinates)).encode()).hexdigest()[:10]
    directory = cache_directory() / f"{name}-{coordinates[0][2]}-{digest}"
    if directory.is_dir():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:  # for example the home of a service user
        what = f"{directory.parent} cannot be made ({problem.strerror}): set FERRY_CACHE to a folder for Kafka's jars"
        raise ArgumentError(what) from None
    with locked(directory.parent / "resolve.lock", os.O_WRONLY | os.O_CREAT):
        if not directory.is_dir():
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix="resolving-") as scratch:
                jars = Path(scratch) / "jars"
                for coordinate in coordinates:
                    _retrieve(coordinate, jars)
                jars.rename(directory)
    return directory


def java() -> str:
    """The java to run: of JAVA_HOME, as Spark takes it, or the first on PATH. ArgumentError naming what to install when there is none."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if found is None:
        raise ArgumentError("java is not installed: install Java 17 or newer (Debian, Ubuntu: openjdk-17-jre-headless), or set JAVA_HOME")
    if not os.access(found, os.X_OK):
        raise ArgumentError(f"JAVA_HOME={home} has no bin/java: set it to a Java 17 or newer, or unset it")
    return found


def _retrieve(coordinate: Coordinate, jars: Path) -> None:
    group, artifact, version = coordinate
    command = [java(), "-jar", str(ivy_jar()), "-cache", str(cache_directory() / "ivy")]
    command += ["-dependency", group, artifact, version, "-confs", "default", "-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False, cwd=jars.parent)
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"{group}:{artifact}:{version} was not downloaded within {RESOLVE_SECONDS} s: check the network") from None
    if done.returncode or not (jars / f"{artifact}-{version}.jar").is_file() or "UNRESOLVED DEPENDENCIES" in done.stdout:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise JarsMissing(f"{group}:{artifact}:{version} could not be downloaded: check the network; Ivy said:\n{tail}")


def ivy_jar() -> Path:
    """The jar of Ivy that PySpark brings. JarsMissing."""
    specification = importlib.util.find_spec("pyspark")
    if specification is None or not specification.submodule_search_locations:
        raise JarsMissing("pyspark is not installed: its Ivy resolves Kafka's jars; pip install 'kafka-ferry[spark]'")
    jars = sorted(Path(specification.submodule_search_locations[0]).glob("jars/ivy-*.jar"))
    if not jars:
        raise JarsMissing("pyspark has no Ivy jar: install the full pyspark, not pyspark-client alone")
    return jars[-1]


@contextmanager
def locked(path: Path, flags: int = os.O_RDONLY) -> Iterator[None]:
    """Lock a file or directory against other processes. `flags`: as of os.open."""
    handle = os.open(path, flags, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
