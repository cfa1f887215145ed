"""Two real Kafka clusters on this machine, to try Ferry on: `ferry sandbox`.

Knows no other package.
Begin with `pair.py`, then `broker.py`.
"""
