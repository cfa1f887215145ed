"""Verify: both sides compared, record by record."""
