"""Two real Kafka clusters on this machine, to try Ferry on: `ferry sandbox`.

Knows Kafka's jars and processes.
Begin with `pair.py`, then `broker.py`.
"""

from ferry.sandbox.pair import SandboxStatus, down, fill, status, up
from ferry.sandbox.sample_data import load_sample_topics

__all__ = ["SandboxStatus", "down", "fill", "load_sample_topics", "status", "up"]
