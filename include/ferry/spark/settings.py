"""The Spark configuration of Ferry's jobs: quick to start, one attempt for each task, no secrets.

Spark must not run a task again by itself: Ferry's driver decides what is tried again, after fencing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
# For the driver, which only schedules, and for spark-submit's launcher, a JVM that only builds the driver's command line. With a serial
# collector and no optimising compiler the driver starts a second sooner, with a third less CPU time.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def spark_conf(master: str, java_options: str = "") -> dict[str, str]:
    """Spark properties for one job on `master`. `java_options`: further ones of the driver."""
    conf = {
        "spark.task.maxFailures": "1",
        "spark.speculation": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options}".rstrip(),
        "spark.python.daemon.module": "ferry.spark.worker_daemon",
        # If the user sets spark.pyspark.python, it is for executors: the driver always uses this Python.
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONUNBUFFERED": "1",
    }
    if on_this_machine(master):
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return conf


def on_this_machine(master: str) -> bool:
    """Whether the job runs on this machine alone."""
    return master.startswith("local") or "//127.0.0.1" in master or "//localhost" in master


def spark_environment(spark_home: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of spark-submit: this very Python for driver and local workers."""
    return {
        **(os.environ if environment is None else environment),
        "SPARK_HOME": spark_home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
    }
