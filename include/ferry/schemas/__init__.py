"""Schema registries: what they hold, what a copy of it needs, and how to talk to them.

Knows `config`, `policy`. Speaks Confluent's REST API, and takes nothing on trust that an answer can show: neither modes nor ids.

Begin with `plan.py`: what the target lacks, in the order in which it must be written, and what forbids writing it.
"""
