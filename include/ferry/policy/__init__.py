"""Names of remote topics, and filters: which topics, groups and topic configs a flow copies (pure, but for users' classes).

Knows no other package. `ferry.config.Flow` combines these rules.
Begin with `naming.py` and `selection.py`.
"""
