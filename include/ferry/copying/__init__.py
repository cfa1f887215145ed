"""Copies offset ranges exactly once: snapshot, plan, fencing, lanes, transactions.

Knows clusters, the ledger, message handlers, and how remote topics are created.
Begin with `driver.py`, then `lane.py`; `plan.py` and `cursor.py` decide (pure).
"""
