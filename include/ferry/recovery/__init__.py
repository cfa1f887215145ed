"""What people decide: failover, failback, cut-over, start positions, and the ways from MirrorMaker and back.

Knows `clusters`, `config`, `copying`, `ledger`, `pipeline`, `policy`, `syncs`, `translation`, `verify` and `wire`.
Begin with `failover.py`; `seeding.py` for start positions.
"""
