"""A source and a target cluster that start at the same time and are stopped together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tools.kafka import SandboxCluster

# Tests write records with old timestamps, which time-based retention would delete within the session.
FOREVER = {"log.retention.ms": "-1"}


@contextmanager
def both_clusters(
    directory: Path, properties: Mapping[str, str] = FOREVER, target_properties: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """Source and target with the same `settings` of SandboxCluster.start, and `properties` unless the target has its own."""
    files = {"source": properties, "target": target_properties or properties}
    with ExitStack() as running, ThreadPoolExecutor(2) as pool:
        starting = [pool.submit(SandboxCluster.start, directory / name, name, properties=file, **settings) for name, file in files.items()]
        # Where one fails, the other is stopped all the same.
        for future in starting:
            if future.exception() is None:
                running.enter_context(future.result())
        source, target = (future.result() for future in starting)
        yield source, target
