"""Kafka's bytes: record batches, their transformation for the target, and records of internal topics (pure).

Knows `handling`. Does no I/O of its own.
Begin with `batch.py`, then `transform.py`, which a copy calls.
"""
