"""What a run did: reports, and how far a flow is."""
