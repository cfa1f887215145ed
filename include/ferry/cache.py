"""The directory of Ferry's cache: Kafka's jars for the sandbox, Spark's class archive. It may be removed at any time."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """`$FERRY_CACHE`, or `~/.cache/ferry`; absolute."""
    return Path(os.environ.get("FERRY_CACHE") or Path.home() / ".cache" / "ferry").absolute()
