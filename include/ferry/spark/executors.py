"""What executors an application has. Asked of Spark's JVM: PySpark itself tells the number of executors only since 4.2.

`defaultParallelism` is no answer. It is at least two on a cluster, counts cores where a task may take several (`spark.task.cpus`), and is
whatever a site has set (`spark.default.parallelism`).
"""

from typing import Any

from pyspark import SparkContext


def executors(context: SparkContext) -> int:
    """How many there are now; 0 on a local master, where the driver is the executor."""
    return len(_of_jvm(context).statusTracker().getExecutorInfos()) - 1  # the list contains the driver


def task_slots(context: SparkContext) -> int:
    """How many tasks the executors that are there now can run at a time; 0: none is there."""
    spark = _of_jvm(context)
    return int(spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile()))


def _of_jvm(context: SparkContext) -> Any:
    return context._jsc.sc()  # noqa: SLF001 - PySpark's own way to its JVM; there is no other
