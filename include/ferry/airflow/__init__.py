"""Ferry in Airflow: DAGs of flows, the copy operator."""
