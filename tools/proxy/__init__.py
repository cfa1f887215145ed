"""A proxy in front of a broker: far lines, and faults of single requests."""
