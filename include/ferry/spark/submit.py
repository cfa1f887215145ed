"""Runs Ferry's jobs by `spark-submit`, for the command line.

The job's output is printed line by line, without Spark's start messages. A signal that ends this process ends the job as well.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import ferry
from ferry.errors import SparkMissing
from ferry.spark.settings import ClassArchive, spark_conf, spark_environment

if TYPE_CHECKING:
    from ferry.copying.request import RunRequest
    from ferry.verify.request import VerifyRequest

COPY_JOB, VERIFY_JOB = "copy_ranges.py", "verify.py"
INSTALL = "pip install 'kafka-ferry[spark]'"
MASTERS = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|spark://[^/]+:\d+(,[^/]+:\d+)*|yarn|k8s://\S+")
# If the master's machine is down, Spark would try again for minutes.
CONNECT_SECONDS = 5.0
# The job has this long to stop its workers when a signal ends it.
STOP_SECONDS = 10.0
NOISE = (
    "NativeCodeLoader",
    "Using Spark's default log4j profile",
    "Setting default log level",
    "To adjust logging level",
    "WARNING: Using incubator modules",
    "Using Spark's repl log4j profile",
    "INFO SparkContext",
    "Setting Spark log level",
    "resolves to a loopback address",
    "Set SPARK_LOCAL_IP",
)


def submit_job(job: str, config: Path, request: RunRequest | VerifyRequest, master: str, say: Callable[[str], None]) -> int:
    """Run a job (COPY_JOB or VERIFY_JOB) on `master`. Returns its exit code. SparkMissing if it cannot be started."""
    check_master(master)
    home = spark_home()
    archive = ClassArchive(home)
    command = [str(home / "bin" / "spark-submit"), "--master", master, "--name", f"ferry {request.flow}"]
    for key, value in spark_conf(master, archive.use_or_write).items():
        command += ["--conf", f"{key}={value}"]
    command += [str(job_file(job)), str(config.resolve()), "--request", request.to_json()]
    with (
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **spark_environment(str(home))},
            start_new_session=True,
        ) as process,
        _ended_with_this(process),
    ):
        for text in process.stdout or ():
            if not any(noise in text for noise in NOISE) and text.strip():
                say(text.rstrip())
    archive.keep(good=process.returncode == 0)
    return process.returncode


def check_master(master: str) -> None:
    """SparkMissing if `master` is no Spark master or does not answer, or if there is no Java."""
    if not MASTERS.fullmatch(master):
        raise SparkMissing(f"--master {master!r} is no Spark master: use local[N], spark://host:port, yarn or k8s://…")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SparkMissing("java is not installed: Spark needs Java 17 or newer (Debian, Ubuntu: openjdk-17-jre-headless)")
    if master.startswith("spark://"):
        addresses = [address.rsplit(":", 1) for address in master.removeprefix("spark://").split(",")]
        if not any(_answers(host, int(port)) for host, port in addresses):
            raise SparkMissing(f"Spark master {master} does not answer; start it, or run here with --master local[2]")


def spark_home() -> Path:
    """Where Spark is: $SPARK_HOME, or the PySpark of this environment."""
    if os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"])
    specification = importlib.util.find_spec("pyspark")
    if specification is None or not specification.submodule_search_locations:
        raise SparkMissing(f"pyspark is not installed in this environment, and SPARK_HOME is not set: {INSTALL}")
    home = Path(specification.submodule_search_locations[0])
    if not (home / "bin" / "spark-submit").exists():
        # The Spark provider brings it. Both write to the same directory, so the versions must be the same.
        client = version("pyspark-client")
        raise SparkMissing(f"pyspark-client {client} is installed, which has no Spark: {INSTALL} pyspark=={client}")
    return home


def job_file(job: str) -> Path:
    """The script that starts a job: the wheel has it in the package, the repository in `spark_jobs/`."""
    package = Path(ferry.__file__).parent
    for directory in (package / "spark_jobs", package.parents[1] / "spark_jobs"):
        if (directory / job).exists():
            return directory / job
    raise SparkMissing(f"{job} is not in the installed package: install it again")


def _answers(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), CONNECT_SECONDS):
        return True
    return False


@contextlib.contextmanager
def _ended_with_this(process: subprocess.Popen[str]) -> Iterator[None]:
    """SIGTERM to this process, or an exception inside, ends the job's whole process group."""

    def stop(number: int, _: object) -> None:
        _end(process)
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
