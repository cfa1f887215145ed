"""The number of executors of an application. Spark's JVM says it: PySpark itself has it only since 4.2.

`defaultParallelism` is another number. On a cluster it is at least two, it counts cores although a task may take several
(`spark.task.cpus`), and a site may set any number (`spark.default.parallelism`).
"""

from typing import Any

from pyspark import SparkContext


def executors(context: SparkContext) -> int:
    """The number of executors now; 0 on a local master, where the driver is the executor."""
    return len(_of_jvm(context).statusTracker().getExecutorInfos()) - 1  # the list contains the driver


def task_slots(context: SparkContext) -> int:
    """How many tasks the executors that are there now can run at a time; 0: none is there."""
    spark = _of_jvm(context)
    return int(spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile()))


def _of_jvm(context: SparkContext) -> Any:
    return context._jsc.sc()  # noqa: SLF001 - PySpark's own way to its JVM; there is no other
