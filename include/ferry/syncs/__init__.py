"""syncs."""
