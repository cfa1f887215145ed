"""confluent-kafka's AdminClient, as far as Ferry uses it to change topics, on a simulated cluster. It answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, IncrementalAlterConfigsRequest
from tests.simulation.world import World


class WorldAdminClient:
    """`settings`: of librdkafka; only the bootstrap servers count."""

    def __init__(self, world: World, settings: Mapping[str, Any]) -> None:
        host, _, port = str(settings["bootstrap.servers"]).partition(",")[0].rpartition(":")
        self._cluster = world.clusters[host, int(port)][0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def poll(self, _: float) -> int:
        return 0

    def _ask(self, request: Any) -> Any:
        """The answer of any broker that is up."""
        up = self._cluster.state.up()
        reply = self._cluster.submit(request, up[0]) if up else None
        if reply is None or reply.lost:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return reply.answer

    def _told(self, names: Iterable[str], ask: Callable[[], Iterable[Any]]) -> dict[str, Future[None]]:
        found: dict[str, Future[None]] = {name: Future() for name in names}
        try:
            results = list(ask())
        except KafkaException as problem:
            for future in found.values():
                future.set_exception(problem)
            return found
        for future, result in zip(found.values(), results, strict=True):
            if result.error_code:
                future.set_exception(KafkaException(KafkaError(result.error_code, result.error_message)))
            else:
                future.set_result(None)
        return found

    def create_topics(self, topics: list[Any], *, validate_only: bool = False, **_: Any) -> dict[str, Future[None]]:
        kind = CreateTopicsRequest.CreatableTopic
        asked = [
            kind(
                name=one.topic,
                num_partitions=one.num_partitions,
                replication_factor=one.replication_factor,
                assignments=[],
                configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in (one.config or {}).items()],
            )
            for one in topics
        ]
        request = CreateTopicsRequest(topics=asked, timeout_ms=30_000, validate_only=validate_only)
        return self._told([one.topic for one in topics], lambda: self._ask(request).topics)

    def create_partitions(self, partitions: list[Any], **_: Any) -> dict[str, Future[None]]:
        kind = CreatePartitionsRequest.CreatePartitionsTopic
        asked = [kind(name=one.topic, count=one.new_total_count, assignments=None) for one in partitions]
        request = CreatePartitionsRequest(topics=asked, timeout_ms=30_000, validate_only=False)
        return self._told([one.topic for one in partitions], lambda: self._ask(request).results)

    def incremental_alter_configs(self, resources: list[Any], **_: Any) -> dict[str, Future[None]]:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        asked = [
            kind(
                resource_type=2,
                resource_name=one.name,
                configs=[
                    kind.AlterableConfig(name=entry.name, config_operation=entry.incremental_operation.value, value=entry.value)
                    for entry in one.incremental_configs
                ],
            )
            for one in resources
        ]
        request = IncrementalAlterConfigsRequest(resources=asked, validate_only=False)
        return self._told([one.name for one in resources], lambda: self._ask(request).responses)
