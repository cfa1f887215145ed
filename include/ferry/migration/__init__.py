"""The ways from MirrorMaker and back: where partitions go on, and what is exported for MirrorMaker 2.

Knows `clusters`, `config`, `copying`, `ledger`, `pipeline` and `wire`.
Begin with `seeding.py`.
"""
