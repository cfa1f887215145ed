"""The order of what a request names, where Ferry takes it from a set: Python orders sets of names anew in each process.

A broker gives the same answers in another order then, and Ferry would go on in another order. Fetch and Produce keep theirs: it decides.
"""

from __future__ import annotations

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
    for name in message._struct.fields:
        found = getattr(message, name, None)
        if isinstance(found, list) and len(found) > 1:
            found = sorted(found, key=_place)  # the list is the caller's
            setattr(message, name, found)
        for one in found if isinstance(found, list) else ():
            if hasattr(one, "_struct"):
                _order(one)


def _place(entry: Any) -> tuple[str, int, str]:
    if not hasattr(entry, "_struct"):
        return ("", entry, "") if isinstance(entry, int) else (str(entry), 0, "")
    name = getattr(entry, "name", None) or getattr(entry, "topic", None) or getattr(entry, "resource_name", None)
    index = next((getattr(entry, one) for one in ("partition_index", "partition", "index") if hasattr(entry, one)), 0)
    return str(name), index, str(getattr(entry, "topic_id", ""))
