"""Gives the records of some topics the target's ids of their schemas, before the message handler gets them.

The ids come from the sync of schemas. What is not among them stops the partition, because the copy would mean another schema, or none.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ferry.config import Flow
from ferry.errors import SchemaIdUnknown
from ferry.handling.calling import HandlerStopped
from ferry.handling.interface import Record
from ferry.handling.loading import Handle
from ferry.policy.filters import NameRule
from ferry.wire.schema_ids import SchemaId, with_ids


@dataclass(frozen=True)
class IdRewriting:
    """A handler."""

    topics: NameRule
    parts: tuple[str, ...]  # key, value, or both
    ids: Mapping[SchemaId, SchemaId]  # of the target, by those of the source
    then: Handle | None  # the flow's message handler
    is_heartbeats: Callable[[str], bool]  # whether a topic holds heartbeats, whose keys begin like ids

    def __call__(self, record: Record) -> Iterable[Record]:
        """HandlerStopped, with SchemaIdUnknown, if the record has an id that is not among them."""

        def new(number: SchemaId, place: str) -> SchemaId:
            if place not in self.parts and not any(part in place for part in self.parts):
                return number
            if number not in self.ids:
                kind = "id" if isinstance(number, int) else "GUID"
                what = f"the {place} has {kind} {number}, and no schema of the source with this {kind} was copied"
                raise HandlerStopped(record.offset, what, SchemaIdUnknown)
            return self.ids[number]

        key, value, headers = with_ids(record, new)
        rewritten = Record(record.topic, record.partition, record.offset, record.timestamp, key, value, headers)
        return (rewritten,) if self.then is None else self.then(rewritten)


def with_new_ids(flow: Flow, ids: Mapping[SchemaId, SchemaId] | None, then: Handle | None) -> Handle | None:
    """The handler of a flow. `ids`: as of LaneTask."""
    topics = flow.rewriting
    return then if ids is None or topics is None else IdRewriting(topics, flow.schemas.rewrite_parts, ids, then, flow.is_heartbeats)


def handle_of(handle: Handle | None, topic: str) -> Handle | None:
    """What gets the records of a topic of the source; None: nothing, so its batches need not be opened."""
    if isinstance(handle, IdRewriting) and (handle.topics.why_not(topic) or handle.is_heartbeats(topic)):
        return handle.then
    return handle
