"""Lanes and ranges as tasks of one bounded Spark job, and `spark-submit` of such jobs.

Knows `config`, `copying`, `ledger`, `pipeline` and `verify`. Also knows PySpark; nothing below does.
Begin with `job.py`, then `runner.py`.
"""
