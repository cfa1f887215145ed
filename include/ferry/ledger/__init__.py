"""What Ferry keeps on the target, and how Ferry reads it: receipts, heads, state, run reports, Ferry's own topics.

Knows `clusters`, `config`, `permissions`, `policy` and `wire`. Knows nothing of how records are copied.
Begin with `receipts.py`, then `state.py` and `open_flow.py`.
"""
