"""Administration of one cluster over confluent-kafka: listings, offsets, configs, topics, groups.

Every call is bounded in time, and errors name the cluster, its address and what was asked. Errors of single partitions are returned beside
the results, never left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from confluent_kafka import (
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from ferry.clusters.describe import Brokers, ConfigOrigin, ConfigValue, TopicDescription, WantedTopic
from ferry.clusters.failures import ERRORS_KEPT, explained, made, most_telling, refusal, refused_login
from ferry.clusters.offset_listing import EARLIEST, LATEST, OffsetListing
from ferry.clusters.partitions import TopicPartition
from ferry.errors import FerryError

if TYPE_CHECKING:
    from ferry.config import Cluster

T = TypeVar("T")

# A cluster that does not answer by then is reported as unreachable instead of holding up a run.
REQUEST_SECONDS = 30.0
# The first contact: a wrong address or password should show quickly.
CONTACT_SECONDS = 10.0
# The client tells of connections that fail only when asked; as long as this, the answer may be there already.
CONTACT_POLL_SECONDS = 0.02
# Large enough for few round trips, small enough for a broker to answer in time.
TOPICS_A_REQUEST = 500
# A controller refuses a request that creates more than 10,000 partitions.
PARTITIONS_A_REQUEST = 2_000
_ORIGINS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: ConfigOrigin.TOPIC,
    ConfigSource.DYNAMIC_BROKER_CONFIG: ConfigOrigin.BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: ConfigOrigin.ALL_BROKERS,
    ConfigSource.STATIC_BROKER_CONFIG: ConfigOrigin.BROKER_FILE,
    ConfigSource.DEFAULT_CONFIG: ConfigOrigin.DEFAULT,
}

Offsets = tuple[dict[TopicPartition, int], dict[tuple[str, int], str]]


class ClusterAdmin:
    """One cluster's administration; a context manager around one client."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._errors: deque[KafkaError] = deque(maxlen=ERRORS_KEPT)
        self._client: AdminClient
        self._offsets: OffsetListing

    def __enter__(self) -> Self:
        from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

        # The client holds the deque's method, not this object: a cycle would let the garbage collector destroy the client in librdkafka's
        # own thread, which crashes the process (confluent-kafka-python, pull requests 2129 and 2131).
        settings = self._cluster.librdkafka(ClientRole.ADMIN)
        settings |= {"error_cb": self._errors.append, "log_level": 2, "log.connection.close": False}
        self._client = made(self._cluster, ClientRole.ADMIN, partial(AdminClient, settings))
        self._client.__enter__()
        self._offsets = OffsetListing(self._cluster)
        return self

    def __exit__(self, *details: object) -> None:
        self._offsets.close()
        self._client.__exit__(*details)

    @property
    def alias(self) -> str:
        """The cluster's alias."""
        return self._cluster.alias

    def cluster_id(self) -> str:
        """The cluster's own id. The first contact: ClusterUnreachable within ten seconds, AuthenticationFailed sooner."""
        future = self._client.describe_cluster(request_timeout=CONTACT_SECONDS)
        while not future.done():
            self._client.poll(CONTACT_POLL_SECONDS)
            refusal = refused_login(self._errors)
            if refusal is not None:  # the client would go on trying
                raise explained(self._cluster, "logging in", refusal)
        return str(self._result("describing the cluster", future, CONTACT_SECONDS).cluster_id)

    def brokers(self) -> Brokers:
        """Which brokers the cluster has, those that are down as far as replicas name them."""
        try:
            found = self._client.list_topics(timeout=CONTACT_SECONDS)
        except KafkaException as problem:
            raise self._explained("listing brokers", problem) from problem
        held = (replica for topic in found.topics.values() for part in topic.partitions.values() for replica in part.replicas)
        return Brokers(frozenset(found.brokers), frozenset(found.brokers) | frozenset(held))

    def topic_names(self) -> tuple[str, ...]:
        """The name of every topic that the user may describe, in order."""
        try:
            return tuple(sorted(self._client.list_topics(timeout=CONTACT_SECONDS).topics))
        except KafkaException as problem:
            raise self._explained("listing topics", problem) from problem

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Every topic that the user may describe, or those of `names` that exist."""
        found = {}
        for chunk in _chunks(self.topic_names() if names is None else sorted(names), TOPICS_A_REQUEST):
            for name, future in self._client.describe_topics(TopicCollection(list(chunk)), request_timeout=REQUEST_SECONDS).items():
                try:
                    found[name] = _description(_settled(future))
                except KafkaException as problem:
                    if problem.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # deleted in between
                        raise self._explained(f"describing topic {name}", problem, f"Describe on topic {name}") from problem
        return found

    def denied_topics(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of `names` that the user may not describe, so that `topics` leaves them out, whether they exist or not."""
        denied = []
        for chunk in _chunks(sorted(names), TOPICS_A_REQUEST):
            for name, future in self._client.describe_topics(TopicCollection(list(chunk)), request_timeout=REQUEST_SECONDS).items():
                try:
                    _settled(future)
                except KafkaException as problem:
                    if problem.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                        denied.append(name)
        return tuple(denied)

    def topic_configs(self, names: Iterable[str]) -> dict[str, dict[str, ConfigValue]]:
        """Effective config of topics; topics that are gone are absent. NotAuthorized when one may not be described."""
        found, problems = self.visible_configs(names)
        for problem in problems.values():
            raise problem
        return found

    def visible_configs(
        self, names: Iterable[str], *, to_alter: bool = False
    ) -> tuple[dict[str, dict[str, ConfigValue]], dict[str, FerryError]]:
        """Effective config of topics, and what went wrong by topic; topics that are gone are in neither.

        `to_alter`: they are altered next, so who may not describe them is told to get what that takes, which describing needs less than.
        """
        found, problems = {}, {}
        for name, answer in self._configs(ResourceType.TOPIC, names, "AlterConfigs" if to_alter else "DescribeConfigs"):
            if isinstance(answer, FerryError):
                problems[name] = answer
            else:
                found[name] = answer
        return found, problems

    def broker_configs(self) -> dict[str, ConfigValue]:
        """Effective config of one broker."""
        nodes = self._result("describing the cluster", self._client.describe_cluster(request_timeout=REQUEST_SECONDS)).nodes
        for _, answer in self._configs(ResourceType.BROKER, [str(nodes[0].id)], "DescribeConfigs"):
            if isinstance(answer, FerryError):
                raise answer
            return answer
        return {}

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log start offsets, and what went wrong by partition."""
        return self._list_offsets(partitions, EARLIEST, committed=False)

    def end_offsets(self, partitions: Iterable[TopicPartition], *, committed: bool = True) -> Offsets:
        """Last stable offsets (high watermarks without `committed`), and what went wrong by partition."""
        return self._list_offsets(partitions, LATEST, committed=committed)

    def offsets_for_time(
        self, partitions: Iterable[TopicPartition], milliseconds: int
    ) -> tuple[dict[TopicPartition, int | None], dict[tuple[str, int], str]]:
        """The first offset whose record is at or after the time (None: there is none), and what went wrong by partition."""
        found, problems = self._list_offsets(partitions, milliseconds, committed=True)
        return {key: offset if offset >= 0 else None for key, offset in found.items()}, problems

    def create_topics(self, wanted: Iterable[WantedTopic], *, dry_run: bool = False) -> dict[str, FerryError]:
        """Create many topics, several a request; what went wrong by topic. One that exists already is fine.

        `dry_run`: nothing is created; what would go wrong.
        """
        problems = {}
        for chunk in _by_width(wanted):
            topics = [NewTopic(one.name, one.partitions, one.replication_factor, config=dict(one.config)) for one in chunk]
            rights = {one.name: one.rights for one in chunk}
            futures = self._client.create_topics(topics, request_timeout=REQUEST_SECONDS, validate_only=dry_run)
            for name, future in futures.items():
                problem = self._refusal(
                    f"creating topic {name}", future, f"{rights[name]} on topic {name}", KafkaError.TOPIC_ALREADY_EXISTS
                )
                if problem is not None:
                    problems[name] = problem
        return problems

    def create_partitions(self, widths: Mapping[str, int]) -> dict[str, FerryError]:
        """Grow topics to so many partitions, several a request; what went wrong by topic."""
        problems = {}
        for chunk in _chunks(sorted(widths), TOPICS_A_REQUEST):
            growths = [NewPartitions(name, widths[name]) for name in chunk]
            for name, future in self._client.create_partitions(growths, request_timeout=REQUEST_SECONDS).items():
                problem = self._refusal(f"growing topic {name} to {widths[name]} partitions", future, f"Alter on topic {name}")
                if problem is not None:
                    problems[name] = problem
        return problems

    def alter_topic_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> dict[str, FerryError]:
        """Set (None: remove) entries of topics' own configs by IncrementalAlterConfigs, several topics a request; what went wrong by topic.

        A topic whose change is refused keeps all that it had.
        """
        problems = {}
        for chunk in _chunks(sorted(changes), TOPICS_A_REQUEST):
            resources = [
                ConfigResource(
                    ResourceType.TOPIC, name, incremental_configs=[_alteration(*entry) for entry in sorted(changes[name].items())]
                )
                for name in chunk
            ]
            for resource, future in self._client.incremental_alter_configs(resources, request_timeout=REQUEST_SECONDS).items():
                doing = f"changing {', '.join(sorted(changes[resource.name]))} of topic {resource.name}"
                problem = self._refusal(doing, future, f"AlterConfigs on topic {resource.name}")
                if problem is not None:
                    problems[resource.name] = problem
        return problems

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics; those that are gone already are fine."""
        for name, future in self._client.delete_topics(list(names), request_timeout=REQUEST_SECONDS).items():
            self._tolerating(f"deleting topic {name}", future, KafkaError.UNKNOWN_TOPIC_OR_PART, f"Delete on topic {name}")

    def delete_group(self, group: str) -> None:
        """Delete a group; one that is gone already is fine."""
        future = self._client.delete_consumer_groups([group], request_timeout=REQUEST_SECONDS)[group]
        self._tolerating(f"deleting group {group}", future, KafkaError.GROUP_ID_NOT_FOUND, f"Delete on group {group}")

    def _list_offsets(self, partitions: Iterable[TopicPartition], at: int, *, committed: bool) -> Offsets:
        found, errors = self._offsets.offsets((TopicPartition(*key) for key in partitions), at, committed=committed)
        problems: dict[tuple[str, int], str] = {}
        for key, error in errors.items():
            problems[key] = str(explained(self._cluster, "listing its offsets", error, grant=f"Describe on topic {key.topic}"))
        return found, problems

    def _configs(self, kind: ResourceType, names: Iterable[str], right: str) -> Iterator[tuple[str, dict[str, ConfigValue] | FerryError]]:
        of_topics = kind == ResourceType.TOPIC
        for chunk in _chunks(sorted(names), TOPICS_A_REQUEST):
            resources = [ConfigResource(kind, name) for name in chunk]
            for resource, future in self._client.describe_configs(resources, request_timeout=REQUEST_SECONDS).items():
                try:
                    entries = _settled(future)
                except KafkaException as problem:
                    if problem.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        what = f"topic {resource.name}" if of_topics else f"broker {resource.name}"
                        grant = f"{right} on {what if of_topics else 'the cluster'}"
                        yield resource.name, self._explained(f"describing the config of {what}", problem, grant)
                    continue
                yield resource.name, {name: _config_value(entry) for name, entry in entries.items()}

    def _refusal(self, doing: str, future: Future[Any], grant: str, fine: int | None = None) -> FerryError | None:
        """What a change met, the error code `fine` apart; ChangeRefused where the broker will not have it, whoever asks."""
        try:
            _settled(future)
        except KafkaException as problem:
            code = problem.args[0].code()
            return None if code == fine else refusal(self._cluster, doing, problem.args[0], self._earlier_error(), grant=grant)
        return None

    def _tolerating(self, doing: str, future: Future[Any], code: int, grant: str) -> None:
        try:
            self._result(doing, future, grant=grant)
        except FerryError as problem:
            cause = problem.__cause__
            if not isinstance(cause, KafkaException) or cause.args[0].code() != code:
                raise

    def _result(self, doing: str, future: Future[T], seconds: float = REQUEST_SECONDS, grant: str = "") -> T:
        try:
            return _settled(future, seconds)
        except KafkaException as problem:
            raise self._explained(doing, problem, grant) from problem

    def _explained(self, doing: str, problem: KafkaException, grant: str = "") -> FerryError:
        return explained(self._cluster, doing, problem.args[0], self._earlier_error(), grant=grant)

    def _earlier_error(self) -> KafkaError | None:
        self._client.poll(0)  # it keeps what it has to tell until it is asked
        return most_telling(self._errors)


def _settled(future: Future[T], seconds: float = REQUEST_SECONDS) -> T:
    """The result of a request that was given `seconds`; KafkaException also when the client itself does not end it in time."""
    try:
        return future.result(seconds + 1.0)
    except FutureTimeout as problem:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from problem  # noqa: SLF001 - librdkafka's public name for it


def _description(found: Any) -> TopicDescription:
    return TopicDescription(
        name=found.name,
        topic_id=_uuid_text(found.topic_id),
        partitions=len(found.partitions),
        replicas=tuple(tuple(node.id for node in partition.replicas) for partition in found.partitions),
        internal=found.is_internal,
        led=all(partition.leader is not None and partition.leader.id >= 0 for partition in found.partitions),
    )


def _uuid_text(topic_id: Any) -> str | None:
    high, low = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    number = ((high & (1 << 64) - 1) << 64) | (low & (1 << 64) - 1)
    return str(UUID(int=number)) if number else None


def _config_value(entry: ConfigEntry) -> ConfigValue:
    origin = _ORIGINS.get(ConfigSource(entry.source), ConfigOrigin.UNKNOWN)
    return ConfigValue(entry.value, origin, sensitive=entry.is_sensitive, read_only=entry.is_read_only)


def _alteration(name: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=operation)


def _by_width(wanted: Iterable[WantedTopic]) -> Iterator[list[WantedTopic]]:
    chunk: list[WantedTopic] = []
    for topic in wanted:
        if chunk and sum(one.partitions for one in chunk) + topic.partitions > PARTITIONS_A_REQUEST:
            yield chunk
            chunk = []
        chunk.append(topic)
    if chunk:
        yield chunk


def _chunks(names: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))
