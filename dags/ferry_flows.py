"""The DAGs of every flow of the files that FERRY_CONFIG names."""

from ferry.airflow.dags import flows

flows()
