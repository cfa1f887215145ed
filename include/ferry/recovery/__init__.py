"""What people decide: failover, failback, cut-over, start positions, and the ways from MirrorMaker and back.

Knows `clusters`, `config`, `copying`, `ledger`, `pipeline`, `policy`, `syncs`, `translation`, `verify` and `wire`.
Begin with `failover.py`; `seeding.py` for start positions.
"""

# Longer than a restart of a client takes. Here, because `ferry --help` shows it and loads no other module of this package.
QUIET_SECONDS = 5.0
