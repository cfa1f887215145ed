"""Entry point for spark-submit: compare both sides of one flow. Everything is in ferry.spark.job."""

from ferry.spark.installed import prefer_installed_pyspark

prefer_installed_pyspark()

from ferry.airflow.connections import connection_lookup  # noqa: E402 - after the path is set
from ferry.ending import run_and_end  # noqa: E402 - likewise
from ferry.spark.job import verify_main  # noqa: E402 - likewise

if __name__ == "__main__":
    run_and_end(lambda: verify_main(connection_lookup()))
