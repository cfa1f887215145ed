"""Facts about this machine: Python, Java, Spark, Airflow, memory, disk, limits. Starts only `java -version` and one Python."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import psutil

from ferry.config.flow import CONFIG_VARIABLE

# A wrapper script that hangs must not stop the diagnosis.
ASK_SECONDS = 15.0
SHM = Path("/dev/shm")  # noqa: S108 - read only
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
PACKAGES = ("pyspark", "pyspark-client", "apache-airflow", "apache-airflow-providers-apache-spark")


@dataclass(frozen=True)
class MachineFacts:
    """Sizes in bytes; None or empty: it does not exist. `java_version`: the first line that Java prints.

    `worker_python`: PYSPARK_PYTHON and the version that it prints (empty: it does not start).
    """

    python: tuple[int, int, int]
    packages: dict[str, str] = field(hash=False)
    java: str = ""
    java_version: str = ""
    java_home: str | None = None
    spark_home: str | None = None
    spark_home_version: str = ""
    worker_python: tuple[str, str] | None = None
    ferry_config: str | None = None
    cores: int = 1
    memory: int = 0
    memory_available: int = 0
    scratch: str = ""
    scratch_free: int = 0
    shm_free: int | None = None
    open_files: int = 0


def read_machine_facts() -> MachineFacts:
    java_home, spark_home = os.environ.get("JAVA_HOME") or None, os.environ.get("SPARK_HOME") or None
    java = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java") or ""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    worker = os.environ.get("PYSPARK_PYTHON")
    return MachineFacts(
        python=sys.version_info[:3],
        packages={name: version for name in PACKAGES if (version := _installed(name))},
        java=java,
        java_version=_answer(java, "-version") if java else "",
        java_home=java_home,
        spark_home=spark_home,
        spark_home_version=_spark_version(Path(spark_home)) if spark_home else "",
        worker_python=(worker, _answer(worker, "--version")) if worker else None,
        ferry_config=os.environ.get(CONFIG_VARIABLE) or None,
        cores=len(os.sched_getaffinity(0)),
        memory=min(psutil.virtual_memory().total, _container_limit()),
        memory_available=min(psutil.virtual_memory().available, _container_limit()),
        scratch=scratch,
        scratch_free=_free(Path(scratch)) or 0,
        shm_free=_free(SHM),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _answer(program: str, option: str) -> str:
    """The first line that the program prints; empty: it does not start, fails, or does not end."""
    try:
        done = subprocess.run([program, option], capture_output=True, text=True, errors="replace", timeout=ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("Picked up ")]
    return lines[0].strip() if lines and done.returncode == 0 else ""


def _spark_version(home: Path) -> str:
    """The version by the jars, because the RELEASE file of some builds has none."""
    jars = home.glob("jars/spark-core_*.jar")
    return next((found[1] for jar in jars if (found := re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name))), "")


def _container_limit() -> int:
    try:
        return int(_CGROUP_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return sys.maxsize


def _free(directory: Path) -> int | None:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None
