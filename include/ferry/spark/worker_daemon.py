"""Spark's Python daemon, which forks the workers. It imports the modules of lanes and verifies before the first fork.

Otherwise every worker would import them itself, for half a CPU second.
"""

from ferry.spark.installed import prefer_installed_pyspark

prefer_installed_pyspark()

from pyspark.daemon import manager  # noqa: E402 - after the path is set

import ferry.spark.runner  # noqa: E402, F401 - loaded for the workers

if __name__ == "__main__":
    manager()
