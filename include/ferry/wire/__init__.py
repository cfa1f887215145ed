"""Kafka's bytes: record batches, their transformation for the target, and records of internal topics (pure).

Knows bytes and message handlers. Does no I/O.
Begin with `batch.py`, then `transform.py`, which a copy calls.
"""
