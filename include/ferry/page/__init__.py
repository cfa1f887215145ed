"""What the Ferry page shows: JSON documents, and the processes that read clusters for it.

Knows `clusters`, `config`, `copying`, `ledger`, `monitoring`, `pipeline`, `policy`, `syncs`, `translation` and `wire`. Knows no Airflow.
Begin with `documents.py`, then `readers.py`.
"""
