"""The order of what a request names, where Ferry takes it from a set: Python orders sets of names anew in each process.

A broker gives the same answers in another order then, and Ferry would go on in another order. Fetch and Produce keep theirs: it decides.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeProducersRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.consumer.group import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest

_ORDERED = {
    kind.API_KEY
    for kind in (
        AddPartitionsToTxnRequest,
        DescribeConfigsRequest,
        DescribeProducersRequest,
        FindCoordinatorRequest,
        ListOffsetsRequest,
        MetadataRequest,
        OffsetFetchRequest,
        OffsetForLeaderEpochRequest,
    )
}


def in_order(request: Any) -> None:
    """Order the topics, partitions and names of a request, if they come from sets."""
    if request.API_KEY in _ORDERED:
        _order(request)


def _order(message: Any) -> None:
    for name in _lists_of(type(message)):
        found = getattr(message, name)
        if found and isinstance(found, list):
            if len(found) > 1:
                found = sorted(found, key=_place)  # the list is the caller's
                setattr(message, name, found)
            if hasattr(found[0], "_struct"):
                for one in found:
                    _order(one)


@cache
def _lists_of(kind: Any) -> tuple[str, ...]:
    """The fields of a message that hold several values."""
    return tuple(name for name, field in kind._struct.fields.items() if field.is_array())


def _place(entry: Any) -> tuple[str, int, str]:
    if not hasattr(entry, "_struct"):
        return ("", entry, "") if isinstance(entry, int) else (str(entry), 0, "")
    name = getattr(entry, "name", None) or getattr(entry, "topic", None) or getattr(entry, "resource_name", None)
    index = next((getattr(entry, one) for one in ("partition_index", "partition", "index") if hasattr(entry, one)), 0)
    return str(name), index, str(getattr(entry, "topic_id", ""))
