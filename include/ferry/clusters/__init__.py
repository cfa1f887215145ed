"""Kafka for the floors above: connections, Fetch and Produce, coordinators, administration, internal topics.

Knows requests and answers of brokers. Knows nothing of flows' state.
Begin with `connections.py` (data path) or `admin.py`; `answers.py` has every error code.
"""
