"""Offsets of the source as offsets of the target and back, computed from receipts (pure).

Knows receipts and nothing else.
Begin with `offset_map.py`.
"""
