"""One run from plan to report: plan, prepare remote topics, copy, sync, report.

Knows the copy, the syncs and the ledger. Knows neither who called it nor where lanes run.
Begin with `run.py`.
"""
