"""Alerts as documents, and the callbacks that the config names for them.

Knows the config.
Begin with `alert.py`, then `delivering.py`.
"""
