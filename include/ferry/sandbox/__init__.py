"""Real Kafka clusters on this machine, for `ferry sandbox`, the demo, tests and benchmarks.

Knows Kafka's jars and processes. Shares no code with what copies records, so it can check the copy.
Begin with `pair.py`, then `cluster.py`.
"""

from ferry.sandbox.brokers import SandboxBrokers
from ferry.sandbox.cluster import SandboxCluster
from ferry.sandbox.comparison import Comparison, Difference, compare_topics
from ferry.sandbox.jars import resolve_jars
from ferry.sandbox.pair import SandboxStatus, down, fill, status, up
from ferry.sandbox.reading import RecordSeen, read_all
from ferry.sandbox.sample_data import load_sample_topics

__all__ = [
    "Comparison",
    "Difference",
    "RecordSeen",
    "SandboxBrokers",
    "SandboxCluster",
    "SandboxStatus",
    "compare_topics",
    "down",
    "fill",
    "load_sample_topics",
    "read_all",
    "resolve_jars",
    "status",
    "up",
]
