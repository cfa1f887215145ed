"""Lanes and ranges as tasks of one bounded Spark job, and `spark-submit` of such jobs.

Knows PySpark, runs and verify. Nothing below knows PySpark.
Begin with `job.py`, then `runner.py`.
"""
