"""Entry point for spark-submit: compare both sides of one flow. Everything is in ferry.spark.verify_job."""

import sys

from ferry.spark.installed import prefer_installed_pyspark

prefer_installed_pyspark()

from ferry.spark.verify_job import main  # noqa: E402 - after the path is set

if __name__ == "__main__":
    sys.exit(main())
