"""Offsets of the source as offsets of the target and back, computed from receipts (pure).

Knows `ledger` and `wire`.
Begin with `offset_map.py`.
"""
