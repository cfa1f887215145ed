"""Alerts as documents, and the callbacks that the config names for them.

Knows `config` and `handling`.
Begin with `alert.py`, then `delivering.py`.
"""
