"""Names of remote topics, and filters: which topics, groups and topic configs a flow copies (pure).

Does not know the config: `ferry.config.Flow` combines these rules.
Begin with `replication_policy.py` and `selection.py`.
"""
