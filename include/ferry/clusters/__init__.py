"""Requests to Kafka clusters: connections, Fetch and Produce, coordinators, administration, internal topics.

Knows `config` and `wire`. Does not know the state of flows. Its own floors, from below: `net`, `groups`, `logs`, `admin`, `open_cluster`.
Begin with `open_cluster.py` or `net/connections.py` (data path); `net/error_policy.py` has every error code.
"""
