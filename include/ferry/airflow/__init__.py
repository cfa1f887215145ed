"""Ferry in Airflow: DAGs, the bodies of their tasks, connections, metrics, the routes of the page.

Knows Airflow, and every floor below. Nothing below knows Airflow.
Begin with `steps.py`, then `flows.py`.
"""
