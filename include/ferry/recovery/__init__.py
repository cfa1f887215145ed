"""Movements that people decide about: failover, failback and cut-over.

Knows `clusters`, `config`, `copying`, `ledger`, `migration`, `pipeline`, `policy`, `syncs`, `translation`, `verify` and `wire`.
Begin with `stages.py`.
"""
