"""Copying offset ranges exactly once: plan, lanes, transactions, ledger."""
