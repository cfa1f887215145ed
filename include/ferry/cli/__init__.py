"""The `ferry` command: arguments, questions, tables, one exit code for each outcome.

Knows `alerting`, `client`, `clusters`, `config`, `copying`, `doctor`, `imports`, `ledger`, `migration`, `monitoring`, `permissions`,
`pipeline`, `policy`, `recovery`, `sandbox`, `spark`, `syncs`, `translation`, `verify` and `wire`. Decides nothing about data.
Begin with `main.py`, then `copies.py`.
"""
