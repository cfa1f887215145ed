"""Names of remote topics, and which topics, groups and configs a flow takes (pure).

Knows no config: `ferry.config.Flow` puts these rules together.
Begin with `replication_policy.py` and `selection.py`.
"""
