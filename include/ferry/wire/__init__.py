"""Kafka's bytes: record batches, what becomes of each fetched batch, records of internal topics (pure).

Knows bytes and message handlers. Does no I/O.
Begin with `batch.py`; `treatment.py` is what a copy calls.
"""
