"""Findings about a machine, from facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.doctor.finding import Finding, Verdict
from ferry.doctor.machine import MachineFacts, read_machine_facts
from ferry.doctor.machine_checks import java_major, machine_findings

pytestmark = pytest.mark.unit

GIBIBYTE = 1 << 30
PACKAGES = {"pyspark": "4.2.0", "pyspark-client": "4.2.0", "apache-airflow": "3.3.2", "apache-airflow-providers-apache-spark": "6.3.4"}
GOOD = MachineFacts(
    (3, 12, 4),
    PACKAGES,
    java="/usr/bin/java",
    java_version='openjdk version "21.0.2" 2024-01-16',
    cores=4,
    memory=8 * GIBIBYTE,
    memory_available=8 * GIBIBYTE,
    scratch="/scratch",
    scratch_free=GIBIBYTE,
    shm_free=GIBIBYTE,
    open_files=65536,
)


def without(package: str) -> dict[str, str]:
    return {name: version for name, version in PACKAGES.items() if name != package}


def bad(facts: MachineFacts, config: Path | None = None) -> list[Finding]:
    return [entry for entry in machine_findings(facts, config) if entry.verdict is not Verdict.OK]


def test_a_good_machine(tmp_path: Path) -> None:
    config = tmp_path / "mm2.properties"
    config.touch()
    assert bad(replace(GOOD, ferry_config=str(config)), config) == []


@pytest.mark.parametrize(
    ("facts", "check", "verdict", "told", "fix"),
    [
        (replace(GOOD, python=(3, 10, 1)), "Python", "failure", "3.10.1", "PYTHON="),
        (replace(GOOD, python=(3, 14, 0)), "Python", "failure", "3.14.0", "PYTHON="),
        (replace(GOOD, java="", java_version=""), "Java", "failure", "not found", "openjdk-17-jre-headless"),
        (replace(GOOD, java_version='openjdk version "11.0.2"'), "Java", "failure", "11.0.2", "openjdk-17-jre-headless"),
        (replace(GOOD, java_version='java version "1.8.0_402"'), "Java", "failure", "1.8.0", "openjdk-17-jre-headless"),
        (replace(GOOD, java_version="GraalVM"), "Java", "warning", "GraalVM", "openjdk-17-jre-headless"),
        (replace(GOOD, java_home="/nowhere", java_version=""), "Java", "failure", "/nowhere", "unset JAVA_HOME"),
        (replace(GOOD, packages={**PACKAGES, "pyspark-client": "4.1.0"}), "PySpark", "failure", "4.1.0", "pyspark-client==4.1.0"),
        (replace(GOOD, packages=without("pyspark")), "PySpark", "failure", "alone", "pip install 'kafka-ferry[spark]' pyspark==4.2.0"),
        (replace(GOOD, packages=without("pyspark"), spark_home="/s", spark_home_version="4.2.0"), "PySpark", "ok", "SPARK_HOME", ""),
        (replace(GOOD, packages={}), "PySpark", "failure", "not installed", "make setup"),
        (replace(GOOD, packages={}), "Airflow", "warning", "no DAGs", "make setup"),
        (
            replace(GOOD, packages=without("apache-airflow-providers-apache-spark")),
            "Airflow",
            "failure",
            "without the Spark provider",
            "pip install apache-airflow-providers-apache-spark",
        ),
        (replace(GOOD, spark_home="/old", spark_home_version="3.5.1"), "SPARK_HOME", "failure", "Spark 3.5.1", "unset SPARK_HOME"),
        (replace(GOOD, spark_home="/empty"), "SPARK_HOME", "failure", "no Spark", "unset SPARK_HOME"),
        (replace(GOOD, spark_home="/good", spark_home_version="4.2.0"), "SPARK_HOME", "ok", "4.2.0", ""),
        (replace(GOOD, worker_python=("/usr/bin/python3", "Python 3.9.1")), "PYSPARK_PYTHON", "warning", "3.9.1", "unset"),
        (replace(GOOD, worker_python=("/usr/bin/python3", "Python 3.1.2")), "PYSPARK_PYTHON", "warning", "3.1.2", "unset"),
        (replace(GOOD, worker_python=("/gone", "")), "PYSPARK_PYTHON", "warning", "does not start", "unset"),
        (replace(GOOD, ferry_config="/gone.properties"), "FERRY_CONFIG", "failure", "no file", "export FERRY_CONFIG="),
        (replace(GOOD, ferry_config="/" + "x" * 300), "FERRY_CONFIG", "failure", "no file that this user can read", "export FERRY_CONFIG="),
        (replace(GOOD, ferry_config=None), "FERRY_CONFIG", "warning", "not set", "export FERRY_CONFIG="),
        (replace(GOOD, scratch_free=1 << 20), "disk", "failure", "/scratch", "SPARK_LOCAL_DIRS"),
        (replace(GOOD, shm_free=1 << 20), "shared memory", "warning", "1 MiB", "--shm-size"),
        (replace(GOOD, open_files=256), "ulimit -n", "warning", "256", "ulimit -n 4096"),
        (replace(GOOD, open_files=-1), "ulimit -n", "ok", "unlimited", ""),
    ],
)
def test_each_check(facts: MachineFacts, check: str, verdict: str, told: str, fix: str) -> None:
    found = next(entry for entry in machine_findings(facts, None) if entry.check == check)
    assert (found.verdict, told in found.found, fix in found.fix) == (verdict, True, True), found
    assert (found.fix == "") == (found.verdict is Verdict.OK)
    assert "\n" not in found.fix


def test_a_config_that_airflow_does_not_use(tmp_path: Path) -> None:
    config, other = tmp_path / "mm2.properties", tmp_path / "other.properties"
    other.touch()
    (found,) = bad(replace(GOOD, ferry_config=str(other)), config)
    assert (found.check, str(other) in found.found, str(config) in found.fix) == ("FERRY_CONFIG", True, True)
    config.touch()
    assert not bad(replace(GOOD, ferry_config=f"{other}:{config}"), config), "it may name several"


@pytest.mark.parametrize(
    ("text", "major"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('version "25" 2025', 25), ("?", None)],
)
def test_java_versions(text: str, major: int | None) -> None:
    assert java_major(text) == major


def test_this_machine_has_what_the_tests_need() -> None:
    facts = read_machine_facts()
    assert java_major(facts.java_version) is not None
    assert facts.packages["pyspark"] == facts.packages["pyspark-client"]
    assert facts.memory >= facts.memory_available > 0
    assert facts.cores >= 1
