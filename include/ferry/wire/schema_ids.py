"""The ids of schemas in a record, as the serializers of schema registries write them (pure).

- Frame, in front of key or value: byte 0, and the id in four bytes. Data follow (of Protobuf, first the path of indexes of the message).
- Header `__key_schema_id` or `__value_schema_id`: byte 1 and a GUID in 16 bytes, or byte 0 and an id. The same path may follow.

A header wins over the frame, as for the clients: then key or value is data only. Of several headers one client takes the first and another
the last, so each of them counts. Ids begin with 1. So bytes that would be id 0 are no frame: a long of Kafka's serializer, for example.
"""

from collections.abc import Callable, Iterator
from uuid import UUID

from ferry.handling.interface import Headers, Record

SchemaId = int | str  # an id, or a GUID in the form of UUIDs
NewId = Callable[[SchemaId, str], SchemaId]  # gets an id and its place, in words
ID, GUID = 0, 1
FRAME_BYTES, GUID_BYTES = 5, 17
_HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
_OF_APICURIO = "apicurio."  # how its headers begin


def with_ids(record: Record, new: NewId) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers of the record, with new ids. What is no id stays as it is. Raises what `new` raises."""
    headers = record.headers
    key, value = _with_id(record.key, "key", headers, new), _with_id(record.value, "value", headers, new)
    if headers:
        headers = tuple((name, _replaced(data, f"header {name}", new) if name in _HEADERS.values() else data) for name, data in headers)
    return key, value, headers


def _with_id(payload: bytes | None, place: str, headers: Headers, new: NewId) -> bytes | None:
    if not payload or payload[0] != ID or any(name == _HEADERS[place] and content is not None for name, content in headers):
        return payload
    return _replaced(payload, place, new)


def _replaced(content: bytes | None, place: str, new: NewId) -> bytes | None:
    if content and content[0] == ID and len(content) >= FRAME_BYTES and (number := int.from_bytes(content[1:FRAME_BYTES], "big")):
        return b"\0" + int(new(number, place)).to_bytes(4, "big") + content[FRAME_BYTES:]
    if content and content[0] == GUID and len(content) >= GUID_BYTES:
        return b"\1" + UUID(str(new(str(UUID(bytes=bytes(content[1:GUID_BYTES]))), place))).bytes + content[GUID_BYTES:]
    return content


def ids_of(record: Record) -> list[tuple[SchemaId, str]]:
    """The ids in a record, each with its place."""
    found: list[tuple[SchemaId, str]] = []

    def note(number: SchemaId, place: str) -> SchemaId:
        found.append((number, place))
        return number

    with_ids(record, note)
    return found


def foreign_ids(record: Record) -> Iterator[str]:
    """The registries of other kinds whose ids this record seems to hold, with the place.

    AWS Glue writes byte 3, a byte for the compression (0, 5), and a UUID; Apicurio's own serializers byte 0 and an id of eight bytes, or
    headers.
    """
    for place, payload in (("key", record.key), ("value", record.value)):
        if payload and len(payload) >= 18 and payload[0] == 3 and payload[1] in {0, 5}:
            yield f"AWS Glue, in the {place}"
        elif payload and len(payload) > 9 and not any(payload[:FRAME_BYTES]) and any(payload[FRAME_BYTES:9]):
            yield f"Apicurio with ids of 8 bytes, in the {place}"
    if any(name.startswith(_OF_APICURIO) for name, _ in record.headers):
        yield "Apicurio, in headers"
