"""Ferry and MirrorMaker 2 side by side on real brokers: `python -m benchmarks.run`."""
