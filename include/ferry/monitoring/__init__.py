"""The state of a flow: lag, headroom, losses, limits, metrics, and the list of its runs. Reads only.

Knows the ledger, the plan of a copy, and the results of a verify.
Begin with `status.py`.
"""
