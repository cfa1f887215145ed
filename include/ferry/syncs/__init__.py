"""Everything that is kept in step beside the records: topics, schemas, configs, ACLs, heartbeats, checkpoints, group offsets.

Knows `clusters`, `config`, `ledger`, `permissions`, `policy`, `schemas`, `translation` and `wire`. Knows no copy that is under way.
Begin with `names.py`, which lists the syncs; `config_plan.py` and `group_decision.py` decide (pure).
"""
