"""Entry point for spark-submit: copy offset ranges of one flow. Everything is in ferry.spark.copy_job."""

import sys

from ferry.spark.copy_job import main

if __name__ == "__main__":
    sys.exit(main())
