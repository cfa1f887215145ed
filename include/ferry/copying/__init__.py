"""Copies offset ranges exactly once: snapshot, plan, fencing, lanes, transactions.

Knows `clusters`, `config`, `handling`, `ledger`, `permissions`, `policy`, `syncs` and `wire`.
Begin with `driver.py`, then `lane.py`; `partition_plan.py` and `cursor.py` decide (pure).
"""
