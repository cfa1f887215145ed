"""Offset translation between source and target, from the ledger (pure)."""
