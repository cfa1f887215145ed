"""Versions of Ferry's records. Ferry refuses to change records that a newer Ferry wrote (pure).

Ledger and state share one version. A run writes its flow record, with that version, before any other record of the flow. So flow records
show whether a newer Ferry has run the flow.

Within a version, only fields may be added that older releases may safely ignore, because readers ignore fields that they do not know. A new
kind of record, or a field that must not be ignored, raises the version. A record that cannot be read never counts as missing.
"""

import json
from collections.abc import Mapping
from typing import Any

from ferry import __version__
from ferry.config import Cluster
from ferry.errors import NewerFormat, UnreadableRecord

FORMAT_VERSION = 1  # the version of records in the ledger and the state topic


def place_of(cluster: Cluster, topic: str) -> str:
    """Cluster and topic, for messages."""
    return f"cluster {cluster.alias}: topic {topic}"


def compact(document: Mapping[str, Any]) -> bytes:
    """The document as JSON. Names are in order: equal keys must have equal bytes, because the topics are compacted."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True, default=lambda part: part.document()).encode()


def require_version(document: Mapping[str, Any], where: str, understood: int = FORMAT_VERSION) -> None:
    """NewerFormat when `document` was written in a newer format; UnreadableRecord when it has no version. `where`: as of `place_of`."""
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnreadableRecord(f"{where} holds a record without a format version: it is damaged, or not Ferry's")
    if version > understood:
        raise NewerFormat(
            f"{where} holds format version {version}, and this Ferry ({__version__}) understands versions up to {understood}: a newer "
            "Ferry writes there; upgrade this one to the same release (nothing was written)"
        )
