"""Messages that are made by shortcuts are the same as those of kafka-python, and so are their copies."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from tests.simulation import shortcuts

pytestmark = pytest.mark.unit


def _fields(message: Any) -> dict[str, Any]:
    """What is set, without what a message says of fields that are not."""
    owners = {name: kind for kind in type(message).__mro__ for name in vars(kind).get("__slots__", ())}
    found = {}
    for name, kind in owners.items():
        try:
            found[name] = vars(kind)[name].__get__(message)
        except AttributeError:
            continue
    return found


@pytest.mark.parametrize(
    "make",
    [
        FetchRequest,
        partial(FetchRequest, version=12, max_bytes=3, cluster_id="tagged"),
        partial(FetchRequest, 7, version=4),
        partial(MetadataRequest, topics=None, max_version=8),
        partial(MetadataRequest[1], topics=[]),
        partial(MetadataResponse, version=0, brokers=[], cluster_id="not in this version"),
        partial(FetchResponse.FetchableTopicResponse.PartitionData, version=12, partition_index=1, records=b""),
    ],
)
def test_a_message_and_its_copy_are_the_same(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    usual = make()
    of_usual = copy(usual)
    shortcuts.take(monkeypatch)
    quick = make()
    assert type(quick) is type(usual)
    assert _fields(quick) == _fields(usual)
    assert _fields(copy(quick)) == _fields(of_usual)


def test_a_field_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    shortcuts.take(monkeypatch)
    with pytest.raises(TypeError):
        MetadataRequest(version=1, subjects=[])
    with pytest.raises(AttributeError):
        MetadataRequest(version=1).subjects  # noqa: B018 - it is the read that fails
    assert MetadataRequest().topics == []
