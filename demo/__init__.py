"""The demo of `make demo`: it starts two clusters and an Airflow, runs a DAG, and compares both clusters."""
