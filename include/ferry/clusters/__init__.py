"""Requests to Kafka clusters: connections, Fetch and Produce, coordinators, administration, internal topics.

Knows `config` and `wire`. Does not know the state of flows. Its own floors, from below: `net`, `groups`, `logs`, `admin`.
Begin with `net/connections.py` (data path) or `admin/cluster_admin.py`; `net/error_policy.py` has every error code.
"""
