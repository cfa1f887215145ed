"""Two real Kafka clusters on this machine, to try Ferry on: `ferry sandbox`.

Knows Kafka's jars and processes.
Begin with `pair.py`, then `broker.py`.
"""
