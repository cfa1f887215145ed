"""A proxy in front of a broker: far lines, faults of single requests, and what managed services refuse."""
