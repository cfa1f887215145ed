"""Which rights a flow needs on its two clusters, and no more."""
