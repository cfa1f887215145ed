"""Spark's Python daemon, from which workers are forked, with all that a lane or a verify needs loaded before the first fork.

Otherwise every worker imports the same modules for itself: half a CPU second each.
"""

from __future__ import annotations

from ferry.spark.installed import prefer_installed_pyspark

prefer_installed_pyspark()

from pyspark.daemon import manager  # noqa: E402 - after the path is set

import ferry.spark.runner  # noqa: E402, F401 - loaded for the workers

if __name__ == "__main__":
    manager()
