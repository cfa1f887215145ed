"""`ferry verify`: compares source and target record by record. Writes only its results.

Knows the ledger and the plan of a copy.
Begin with `verifying.py`; `comparer.py` decides (pure).
"""
