"""Ferry: exactly-once Kafka cross-cluster replication as orchestrated batch pipelines."""

__version__ = "0.1.0"
