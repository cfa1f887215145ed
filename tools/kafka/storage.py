"""Formatted storage without a JVM: one made once, of which every further cluster gets a copy with ids of its own.

The storage tool takes a second of a core, and what it writes differs only in ids. A node's storage is `meta.properties`, with the ids, and
a checkpoint with the levels of Kafka's features.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.kafka.class_archive import class_archive, made_from
from tools.kafka.properties_file import write_properties

from ferry.cache import cache_directory
from ferry.sandbox.jars import broker_jars
from ferry.sandbox.server_properties import DATA, format_storage, new_cluster_id, server_settings, write_settings

META = "meta.properties"


def copy_storage(data: Path, cluster_id: str, node: int) -> None:
    """Storage in `data`, which is not there yet, for a node of that cluster: Kafka's own release, its features at their default levels."""
    shutil.copytree(_formatted(), data)
    ids = {"version": "1", "cluster.id": cluster_id, "node.id": str(node), "directory.id": new_cluster_id()}
    write_properties(ids, data / META)


def _formatted() -> Path:
    path = cache_directory() / f"broker-storage-{made_from()}"
    if path.exists():
        return path
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _write(path, class_archive())
    return path


def _write(path: Path, java_options: Sequence[str]) -> None:
    with TemporaryDirectory(dir=path.parent, prefix="writing-") as directory:
        properties = Path(directory) / "server.properties"
        write_settings(properties, server_settings(properties, 9092, 9093))
        format_storage(properties, broker_jars(), new_cluster_id(), java_options=java_options)
        (properties.parent / DATA).rename(path)
