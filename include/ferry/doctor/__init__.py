"""`ferry doctor`: collects facts about the machine, the clusters and the flows, and checks them. Writes nothing.

Knows `clusters`, `config`, `copying`, `ledger`, `monitoring`, `permissions`, `pipeline`, `schemas` and `syncs`.
Begin with `diagnosis.py`; the `_checks` modules check the facts.
"""
