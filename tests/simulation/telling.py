"""Requests and answers of a trace, each in one short line that a person can read."""

from __future__ import annotations

from typing import Any

from tests.simulation.batches import sent

from ferry.clusters.logs.producing import BatchesRequest

MOST = 260
# What says nothing about a request, or more than anybody reads.
_LEFT_OUT = {
    "throttle_time_ms",
    "replica_id",
    "session_id",
    "session_epoch",
    "forgotten_topics_data",
    "rack_id",
    "timeout_ms",
    "tags",
    "api_keys",
    "supported_features",
    "finalized_features",
    "max_wait_ms",
    "min_bytes",
    "max_bytes",
    "partition_max_bytes",
    "transaction_timeout_ms",
}


def told(message: Any) -> str:
    """The name of a request, and what it or an answer says, without what is empty or usual."""
    name = str(message.name).removesuffix("Request") if "Request" in type(message).__name__ else ""
    text = f"{name} {_produced(message) if isinstance(message, BatchesRequest) else _fields(message)}".strip()
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def _produced(request: BatchesRequest) -> str:
    """The batches of a Produce request: where they go, whose they are, and their sequence numbers."""
    found = []
    for name, _, parts in request.batches:
        for index, buffers in parts:
            head = sent(b"".join(bytes(one) for one in buffers))
            whose = f"producer {head.producer_id} epoch {head.producer_epoch} sequence {head.base_sequence}"
            found.append(f"{name}-{index}: {head.records} records, {whose}")
    return f"{request.transactional_id or 'without transaction'}: {'; '.join(found)}"


def _fields(value: Any) -> str:
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(_fields(one) for one in value) + "]"
    named = _named(value)
    if named is None:
        return f"{len(value)} bytes" if isinstance(value, bytes | bytearray | memoryview) else str(value)
    kept = {key: one for key, one in named.items() if key not in _LEFT_OUT and not key.startswith("_") and not _is_nothing(one)}
    return " ".join(f"{key}={_fields(one)}" for key, one in kept.items())


def _named(value: Any) -> dict[str, Any] | None:
    """The fields of a message or a tuple with names."""
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    if hasattr(value, "_struct"):  # a message of kafka-python
        return {name: getattr(value, name, None) for name in value._struct.fields}
    return dict(vars(value)) if hasattr(value, "__dict__") and type(value).__module__.startswith(("ferry", "tests")) else None


def _is_nothing(value: Any) -> bool:
    return (
        value is None or (isinstance(value, str | list | tuple | bytes | bool) and not value) or (type(value) is int and value in {0, -1})
    )
