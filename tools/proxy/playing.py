"""How a proxy plays a `Service`: what becomes of one request, and of the broker's answer to it.

Kafka answers in the order of the requests. So a request that is refused whole does not get its answer at once: the broker gets a harmless
one in its place (ApiVersions with the same correlation id), and its answer is replaced. Where a request has several topics or resources,
the broker gets those that the service takes, and the refused ones are added to its answer.

What kafka-python does not know is forwarded as it is, unless the service does not offer it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_message import ApiMessage
from tools.proxy.rules import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ALTER_CONFIGS,
    API_VERSIONS,
    CREATE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    END_TXN,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from tools.proxy.service import BROKER, NOT_OFFERED, Service

from ferry.clusters.net.error_codes import CODES

# The request's field with its entries, the answer's, and the fields by which an answer's entry names what it is about.
ENTRIES = {
    CREATE_TOPICS: ("topics", "topics", ("name",)),
    DESCRIBE_CONFIGS: ("resources", "results", ("resource_type", "resource_name")),
    ALTER_CONFIGS: ("resources", "responses", ("resource_type", "resource_name")),
    INCREMENTAL_ALTER_CONFIGS: ("resources", "responses", ("resource_type", "resource_name")),
}
WITH_A_CLUSTER_ID = frozenset({METADATA, DESCRIBE_CLUSTER})
# How a request begins: API key, version, correlation id, and the length of the client id.
_HEADER = struct.Struct(">hhih")

Change = Callable[[bytes], bytes]


class Played(NamedTuple):
    """What the broker gets, and what is done to its answer (None: nothing)."""

    forward: bytes
    change: Change | None = None


def play(service: Service, body: bytes) -> Played | None:
    """`body`: one request with its header, without the length. None: the service closes the connection."""
    api, version, correlation, _ = _HEADER.unpack_from(body)
    if api == API_VERSIONS:
        # A client that asks with a version of its own future gets an answer in version 0 (KIP-511).
        offered = service.offers(api, version)
        return Played(
            body if offered else _harmless(correlation), partial(_versions, service, version if offered else 0, refused=not offered)
        )
    if not service.offers(api, version) or not service.reads(len(body)):
        return None
    message = _REQUESTS.get(api)
    if message is None or version > message.max_version:
        return Played(body)
    if api in service.asked or api in service.answered:
        request = message.decode(body, version=version, header=True)
        service.asked.get(api, _nothing)(request)
        return Played(_encoded(request), partial(_changed, service.answered.get(api, _nothing), api, version))
    if api in ENTRIES:
        return _by_entry(service, message.decode(body, version=version, header=True), version)
    if api in WITH_A_CLUSTER_ID and service.cluster_id != "" and api not in service.errors:
        return Played(body, partial(_identified, service, api, version))
    if api not in service.errors and api not in _REFUSALS:
        return Played(body)
    request = message.decode(body, version=version, header=True)
    code = service.refuses(api, request)
    if not code:
        return Played(body)
    refusal = _answer(api, version, correlation, **_REFUSALS.get(api, _at_the_top)(request, version, code))
    return Played(_harmless(correlation), lambda _: refusal)


def _by_entry(service: Service, request: Any, version: int) -> Played:
    """Forward what the service takes; add what it refuses to the answer."""
    api = request.API_KEY
    asked, answered, names = ENTRIES[api]
    verdicts = [(entry, *service.refuses_entry(api, entry)) for entry in getattr(request, asked)]
    taken = [entry for entry, code, _ in verdicts if not code]
    for entry in taken:
        if api == CREATE_TOPICS and service.factors is not None:
            entry.replication_factor = -1
    setattr(request, asked, taken)
    response = _RESPONSES[api]
    kind = getattr(response, next(field.type_str for field in response._struct._fields if field.name == answered))  # noqa: SLF001 - only it knows
    refused = [
        kind(version=version, error_code=code, error_message=why, **{name: getattr(entry, name) for name in names})
        for entry, code, why in verdicts
        if code
    ]
    if not taken:
        refusal = _answer(api, version, request.header.correlation_id, **{answered: refused})
        return Played(_harmless(request.header.correlation_id), lambda _: refusal)

    def change(body: bytes) -> bytes:
        answer = response.decode(body, version=version, header=True)
        results = getattr(answer, answered)
        if api == DESCRIBE_CONFIGS and service.broker_configs is not None:
            for result in results:
                if result.resource_type == BROKER:
                    result.configs = [config for config in result.configs if config.name in service.broker_configs]
        setattr(answer, answered, [*results, *refused])
        return _encoded(answer)

    return Played(_encoded(request), change)


def _versions(service: Service, version: int, body: bytes, *, refused: bool) -> bytes:
    response = _RESPONSES[API_VERSIONS]
    answer = response.decode(body, version=version, header=True)
    kept = []
    for offer in answer.api_keys:
        offer.max_version = min(offer.max_version, service.newest.get(offer.api_key, offer.max_version))
        if offer.max_version > NOT_OFFERED:
            offer.min_version = min(offer.min_version, offer.max_version)
            kept.append(offer)
    answer.api_keys = kept
    if refused:
        answer.error_code = CODES["UNSUPPORTED_VERSION"]
    if not service.features:
        answer.finalized_features = []
    return _encoded(answer)


def _identified(service: Service, api: int, version: int, body: bytes) -> bytes:
    answer = _RESPONSES[api].decode(body, version=version, header=True)
    answer.cluster_id = service.cluster_id
    return _encoded(answer)


def _changed(change: Callable[[Any], None], api: int, version: int, body: bytes) -> bytes:
    answer = _RESPONSES[api].decode(body, version=version, header=True)
    change(answer)
    return _encoded(answer)


def _nothing(_: Any) -> None:
    pass


def _at_the_top(_request: Any, _version: int, code: int) -> dict[str, Any]:
    return {"error_code": code}


def _of_produce(request: Any, version: int, code: int) -> dict[str, Any]:
    response = _RESPONSES[PRODUCE]
    topic, partition = response.TopicProduceResponse, response.TopicProduceResponse.PartitionProduceResponse
    return {
        "responses": [
            topic(
                version=version,
                name=asked.name,
                topic_id=asked.topic_id,
                partition_responses=[
                    partition(version=version, index=each.index, error_code=code, base_offset=-1) for each in asked.partition_data
                ],
            )
            for asked in request.topic_data
        ]
    }


def _of_added_partitions(request: Any, version: int, code: int) -> dict[str, Any]:
    """Version 4 and newer are for brokers."""
    response = _RESPONSES[ADD_PARTITIONS_TO_TXN]
    topic = response.AddPartitionsToTxnTopicResult
    partition = topic.AddPartitionsToTxnPartitionResult
    results = [
        topic(
            version=version,
            name=asked.name,
            results_by_partition=[partition(version=version, partition_index=each, partition_error_code=code) for each in asked.partitions],
        )
        for asked in request.v3_and_below_topics
    ]
    return {"results_by_topic_v3_and_below": results}


def _of_committed_offsets(request: Any, version: int, code: int) -> dict[str, Any]:
    topic = _RESPONSES[TXN_OFFSET_COMMIT].TxnOffsetCommitResponseTopic
    partition = topic.TxnOffsetCommitResponsePartition
    return {
        "topics": [
            topic(
                version=version,
                name=asked.name,
                partitions=[partition(version=version, partition_index=each.partition_index, error_code=code) for each in asked.partitions],
            )
            for asked in request.topics
        ]
    }


# Requests that may be refused for what is in them. Those whose answer has one error code at the top need no function of their own.
_REFUSALS: dict[int, Callable[[Any, int, int], dict[str, Any]]] = {
    PRODUCE: _of_produce,
    INIT_PRODUCER_ID: _at_the_top,
    ADD_PARTITIONS_TO_TXN: _of_added_partitions,
    ADD_OFFSETS_TO_TXN: _at_the_top,
    END_TXN: _at_the_top,
    TXN_OFFSET_COMMIT: _of_committed_offsets,
}


def _harmless(correlation: int) -> bytes:
    """ApiVersions in version 0, without a client id."""
    return _HEADER.pack(API_VERSIONS, 0, correlation, -1)


def _answer(api: int, version: int, correlation: int, **fields: Any) -> bytes:
    message = _RESPONSES[api](version=version, **fields)
    message.with_header(correlation_id=correlation)
    return bytes(message.encode(header=True))


def _encoded(message: Any) -> bytes:
    return bytes(message.encode(header=True))


def _messages(kind: str) -> Iterable[type[ApiMessage]]:
    for module in (admin, consumer, metadata, producer):
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, ApiMessage) and found is not ApiMessage and found.type == kind:
                yield found


_REQUESTS = {message.API_KEY: message for message in _messages("request")}
_RESPONSES = {message.API_KEY: message for message in _messages("response")}
