"""How Ferry's Spark jobs are configured: quick to start, one attempt per task, nothing secret.

Spark never repeats or doubles a task by itself: the driver decides what is tried again, after fencing (design, section 3).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
# The driver's JVM only schedules: a serial collector and no optimising compiler start a second sooner and take a third less CPU.
DRIVER_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


# The launcher is a JVM of its own, which only builds the command line of the next one.
LAUNCHER_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def spark_conf(master: str, java_options: str = "") -> dict[str, str]:
    """Spark properties for one copy job on `master`; `java_options` are the driver's further ones."""
    conf = {
        "spark.task.maxFailures": "1",
        "spark.speculation": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.worker.reuse": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.driver.extraJavaOptions": f"{DRIVER_JAVA_OPTIONS} {java_options}".rstrip(),
        "spark.python.daemon.module": "ferry.spark.worker_daemon",
        # A spark.pyspark.python of the user's is the executors': the driver is always this very Python.
        "spark.pyspark.driver.python": sys.executable,
        # A stopped worker that comes back is fenced by the brokers, not by Spark: its heartbeats may lapse.
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
        "SPARK_LAUNCHER_OPTS": LAUNCHER_JAVA_OPTIONS,
    }
