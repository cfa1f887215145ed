"""Findings about this machine (pure, except that it looks at the file that FERRY_CONFIG names)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ferry.config.flow import CONFIG_VARIABLE
from ferry.doctor.finding import Finding, failure, ok, warning
from ferry.doctor.machine import MachineFacts

HERE = "this machine"
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
# As Spark 4 wants it.
OLDEST_JAVA = 17
MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30
# Spark writes only small files to its scratch directory, but it does not start without them.
LEAST_SCRATCH = 256 * MEBIBYTE
# For the JVM's shared class data and other programs' semaphores; containers get 64 MiB by default.
LEAST_SHM = 16 * MEBIBYTE
# Two connections of a worker to every broker of both clusters, and Spark's files.
LEAST_OPEN_FILES = 1024
_INSTALL = "pip install 'kafka-ferry[{}]' (in a clone of Ferry: make setup)"


def machine_findings(facts: MachineFacts, config: Path | None) -> Iterator[Finding]:
    """All findings about the machine. `config`: the file that is checked."""
    yield _python(facts)
    yield _java(facts)
    yield from _airflow(facts, config)  # before Spark, because its provider brings a part of PySpark
    yield from _spark(facts)
    yield _worker_python(facts)
    yield from _room(facts)


def java_major(version: str) -> int | None:
    """From the first line of `java -version`: 17 of `openjdk version "17.0.15"`, 8 of `java version "1.8.0_402"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    return int(found[1]) if found else None


def _python(facts: MachineFacts) -> Finding:
    told = ".".join(map(str, facts.python))
    if OLDEST_PYTHON <= facts.python[:2] <= NEWEST_PYTHON:
        return ok(HERE, "Python", told)
    return failure(HERE, "Python", told, "make a new .venv with Python 3.11, 3.12 or 3.13: PYTHON=/path/to/python make setup")


def _java(facts: MachineFacts) -> Finding:
    install = "install Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless); `--master inline` needs none"
    if facts.java_home and not facts.java_version:
        found = f"JAVA_HOME={facts.java_home} has no bin/java that starts"
        return failure(HERE, "Java", found, "unset JAVA_HOME, or set it to a Java 17 or newer")
    if not facts.java_version:
        return failure(HERE, "Java", "not found", install)
    major, told = java_major(facts.java_version), f"{facts.java_version} ({facts.java})"
    if major is None:
        return warning(HERE, "Java", f"its version could not be read from: {told}", install)
    if major < OLDEST_JAVA:
        return failure(HERE, "Java", told, install)
    return ok(HERE, "Java", told)


def _spark(facts: MachineFacts) -> Iterator[Finding]:
    spark, client = facts.packages.get("pyspark", ""), facts.packages.get("pyspark-client", "")
    if not (spark or client or facts.spark_home):
        yield failure(HERE, "PySpark", "not installed", _INSTALL.format("spark"))
    elif client and not spark and not facts.spark_home:
        # Only where Ferry is installed does pip know the extra: there is no kafka-ferry on PyPI.
        fix = f"pip install 'kafka-ferry[spark]' pyspark=={client}"
        yield failure(HERE, "PySpark", f"pyspark-client {client} alone, which has no Spark", fix)
    elif spark and client and client != spark:
        found = f"pyspark {spark}, pyspark-client {client}: both write to the same directory"
        yield failure(HERE, "PySpark", found, f"pip install --force-reinstall --no-deps pyspark=={client} pyspark-client=={client}")
    else:
        yield ok(HERE, "PySpark", spark or "from SPARK_HOME")
    yield _spark_home(facts, spark)


def _spark_home(facts: MachineFacts, spark: str) -> Finding:
    home, version = facts.spark_home, facts.spark_home_version
    if home is None:
        return ok(HERE, "SPARK_HOME", "not set: the installed PySpark is used")
    if not version:
        return failure(HERE, "SPARK_HOME", f"{home} holds no Spark (no jars/spark-core_*.jar)", "unset SPARK_HOME")
    if spark and version != spark:
        found = f"{home} is Spark {version}, and PySpark is {spark}: Ferry starts the one of SPARK_HOME"
        return failure(HERE, "SPARK_HOME", found, f"unset SPARK_HOME, or set it to a Spark {spark}")
    return ok(HERE, "SPARK_HOME", f"{home} (Spark {version})")


def _worker_python(facts: MachineFacts) -> Finding:
    if facts.worker_python is None:
        return ok(HERE, "PYSPARK_PYTHON", "not set: Ferry gives this Python to Spark's workers")
    path, version = facts.worker_python
    if not version:
        return warning(HERE, "PYSPARK_PYTHON", f"{path} does not start", "unset PYSPARK_PYTHON, or set it to the python of this .venv")
    ours = ".".join(map(str, facts.python[:2]))
    if not version.startswith(f"Python {ours}."):
        found = f"{path} is {version}, this is Python {ours}: Spark refuses workers of another version"
        return warning(HERE, "PYSPARK_PYTHON", found, "unset PYSPARK_PYTHON, or set it to the python of this .venv")
    return ok(HERE, "PYSPARK_PYTHON", f"{path} ({version})")


def _airflow(facts: MachineFacts, config: Path | None) -> Iterator[Finding]:
    version = facts.packages.get("apache-airflow")
    if not version:
        fix = f"{_INSTALL.format('airflow')}; for runs by hand nothing is missing"
        yield warning(HERE, "Airflow", "not installed: no schedules, no DAGs", fix)
        return
    provider = facts.packages.get("apache-airflow-providers-apache-spark")
    if provider:
        yield ok(HERE, "Airflow", f"{version}, Spark provider {provider}")
    else:
        yield failure(HERE, "Airflow", f"{version} without the Spark provider", "pip install apache-airflow-providers-apache-spark")
    yield _ferry_config(facts.ferry_config, config)


def _ferry_config(named: str | None, config: Path | None) -> Finding:
    # os.path instead of Path, which raises if a directory may not be searched or a name is too long.
    wanted = os.path.realpath(config) if config is not None else "/path/to/mm2.properties"
    fix = f"only for Airflow: export {CONFIG_VARIABLE}={wanted} for its processes, or name the file in a DAG file: flows('{wanted}')"
    if named is None:
        return warning(HERE, CONFIG_VARIABLE, "not set in this shell; ferry run does not need it", fix)
    paths = named.split(os.pathsep)
    for path in paths:
        if not os.path.isfile(path) or not os.access(path, os.R_OK):  # noqa: PTH113 - see above
            return failure(HERE, CONFIG_VARIABLE, f"{path} is no file that this user can read", fix)
    if config is not None and wanted not in map(os.path.realpath, paths):
        return warning(HERE, CONFIG_VARIABLE, f"names {named}, which is not the checked file", fix)
    return ok(HERE, CONFIG_VARIABLE, named)


def _room(facts: MachineFacts) -> Iterator[Finding]:
    if facts.scratch_free < LEAST_SCRATCH:
        found = f"{facts.scratch_free // MEBIBYTE} MiB free in {facts.scratch}, where Spark keeps its files"
        yield failure(HERE, "disk", found, "free some, or set SPARK_LOCAL_DIRS to a directory with room")
    else:
        yield ok(HERE, "disk", f"{facts.scratch_free / GIBIBYTE:.1f} GiB free in {facts.scratch}")
    if facts.shm_free is not None and facts.shm_free < LEAST_SHM:
        fix = "give it 64 MiB or more (docker run --shm-size=256m)"
        yield warning(HERE, "shared memory", f"{facts.shm_free // MEBIBYTE} MiB free in /dev/shm", fix)
    elif facts.shm_free is not None:
        yield ok(HERE, "shared memory", f"{facts.shm_free // MEBIBYTE} MiB free in /dev/shm")
    if 0 <= facts.open_files < LEAST_OPEN_FILES:
        yield warning(HERE, "ulimit -n", f"{facts.open_files} open files", f"ulimit -n {LEAST_OPEN_FILES * 4} where Ferry is started")
    else:
        yield ok(HERE, "ulimit -n", "unlimited" if facts.open_files < 0 else f"{facts.open_files} open files")
