"""Which topics a flow copies, and under which names (pure)."""
