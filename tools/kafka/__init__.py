"""Kafka for tests, benchmarks and the demo: clusters, MirrorMaker 2, and what topics hold as another client sees it."""

from tools.kafka.brokers import SandboxBrokers
from tools.kafka.cluster import SandboxCluster
from tools.kafka.comparison import Comparison, Difference, compare_topics
from tools.kafka.reading import RecordSeen, read_all

__all__ = ["Comparison", "Difference", "RecordSeen", "SandboxBrokers", "SandboxCluster", "compare_topics", "read_all"]
