"""Many partitions, many groups, many runs: what a run costs where little has changed."""
