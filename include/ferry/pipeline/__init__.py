"""One run from plan to report: plan, prepare remote topics, copy, sync, report.

Knows `clusters`, `config`, `copying`, `ledger`, `policy` and `syncs`. Knows neither who called it nor where lanes run.
Begin with `run.py`.
"""
