"""What people decide: failover, failback, cut-over, start positions, and the ways from MirrorMaker and back.

Knows whole runs, verify, and the syncs of groups.
Begin with `failover.py`; `seeding.py` for start positions.
"""
