"""`ferry verify`: compares source and target record by record. Writes only its results.

Knows `clusters`, `config`, `copying`, `handling`, `ledger`, `schemas` and `wire`.
Begin with `verifying.py`; `comparer.py` decides (pure).
"""
