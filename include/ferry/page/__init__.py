"""What the Ferry page shows: JSON documents, and the processes that read clusters for it.

Knows what is monitored, the syncs and the ledger. Knows no Airflow.
Begin with `documents.py`, then `readers.py`.
"""
