"""Requests to Kafka clusters: connections, Fetch and Produce, coordinators, administration, internal topics.

Knows `config` and `wire`. Does not know the state of flows.
Begin with `connections.py` (data path) or `admin.py`; `answers.py` has every error code.
"""
