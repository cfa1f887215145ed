"""Entry point for spark-submit: copy offset ranges of one flow. Everything is in ferry.spark.copy_job."""

import sys

from ferry.spark.installed import prefer_installed_pyspark

prefer_installed_pyspark()

from ferry.spark.copy_job import main  # noqa: E402 - after the path is set

if __name__ == "__main__":
    sys.exit(main())
