"""The state of a flow: lag, headroom, losses, limits, metrics, and the list of its runs. Reads only.

Knows `alerting`, `clusters`, `config`, `copying`, `ledger`, `pipeline`, `syncs`, `verify` and `wire`.
Begin with `health.py`, then `status.py`.
"""
