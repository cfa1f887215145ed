"""Administration of one cluster: questions over the connection that a command shares, and changes with confluent-kafka.

Every call has a time limit. Errors name the cluster, its address and the operation. Errors of single partitions are returned beside the
results.

librdkafka sends nearly all changes to the broker that it knows as the controller, even if that broker is dead. So when nobody answers a
request, or a broker cannot handle it now, Ferry sends it again with a new client, which looks for the brokers again, until a controller is
elected. A request may therefore be executed twice: Ferry does not treat "already done" as an error.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ferry import clock
from ferry.clusters.admin import metadata
from ferry.clusters.admin.describe import Brokers, ConfigValue, Rights, TopicDescription, WantedTopic
from ferry.clusters.logs.offset_listing import EARLIEST, LATEST, OffsetListing
from ferry.clusters.net.connections import ClusterConnection, RequestClosed, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import Question
from ferry.clusters.net.failures import ERRORS_KEPT, explained, is_passing, made, most_telling, refusal, refused_login
from ferry.clusters.net.openssl_start import openssl_limited
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.clusters.net.partitions import TopicPartition, chunks
from ferry.clusters.net.shared_connection import ConnectedCluster, lost
from ferry.config import ClientRole
from ferry.errors import ChangeRefused, ClusterUnreachable, FerryError, RetryRule, count_of

Key = TypeVar("Key")
T = TypeVar("T")

# A healthy controller answers within this time. A dead controller or a wrong address must not cost more. Later attempts get longer.
FIRST_ATTEMPT_SECONDS = 5.0
# The longest attempt, for a controller that is busy with a large change.
REQUEST_SECONDS = 30.0
ATTEMPT_PAUSE_SECONDS = 0.5
# A broker that stops also closes its connections. Then the next attempt finds another broker, or none.
CLOSED_TIMES = 4
# After a first attempt without an answer, Ferry asks any other broker for this long before the cluster counts as unreachable.
ANY_BROKER_SECONDS = 5.0
# A cluster that has never answered is unreachable after this time.
CONTACT_MILLISECONDS = 10_000
# Large enough for few round trips, small enough for a broker to answer in time.
TOPICS_A_REQUEST = 500
# A controller refuses a request that creates more than 10,000 partitions.
PARTITIONS_A_REQUEST = 2_000
# A cluster's answer about a topic, by the error code.
EXIST, MISSING, HIDDEN = KafkaError.NO_ERROR, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED
# By name of the topic or broker: its effective configs; and the errors of those that could not be read.
Configs = tuple[dict[str, dict[str, ConfigValue]], dict[str, FerryError]]
Offsets = tuple[dict[TopicPartition, int], dict[TopicPartition, str]]
# For a key what Ferry does, and the right that this needs.
Explain = Callable[[Key], tuple[str, str]]


class _Clients:
    """An AdminClient, the errors that it has reported, and the OffsetListing. After `close` the next use makes a new client.

    As a context manager around one use: after a failure that may be the clients' own, or after a signal, the next use begins anew.
    """

    def __init__(self, opened: ConnectedCluster) -> None:
        self._opened, self._cluster = opened, opened.cluster
        self.errors: deque[KafkaError] = deque(maxlen=ERRORS_KEPT)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.close()
        self.errors.clear()
        self.answered = False
        self.offsets = OffsetListing(self._opened, ClientRole.ADMIN, CONTACT_MILLISECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if problem is not None and (not isinstance(problem, Exception) or lost(problem)):
            self._begin_anew()

    def forget_errors(self) -> None:
        """Forget the errors that the client has reported: they may be old."""
        if "admin" in self.__dict__:
            self.admin.poll(0)  # it reports errors only when it is polled
        self.errors.clear()

    def close(self) -> None:
        """Close the AdminClient, if there is one."""
        if "admin" in self.__dict__:
            self.admin.__exit__(None, None, None)
            del self.admin

    @cached_property
    def admin(self) -> AdminClient:
        # The client holds the deque's method, not this object: a cycle would let the garbage collector destroy the client in librdkafka's
        # own thread, which crashes the process (confluent-kafka-python, pull requests 2129 and 2131).
        settings = self._cluster.librdkafka()
        settings |= {"error_cb": self.errors.append, "log_level": 2, "log.connection.close": False}
        with openssl_limited(self._cluster):
            client: AdminClient = made(self._cluster, partial(AdminClient, settings))
        client.__enter__()
        return client


class ClusterAdmin:
    """One cluster's administration."""

    def __init__(self, opened: ConnectedCluster) -> None:
        self._opened, self._cluster, self._clients = opened, opened.cluster, _Clients(opened)
        self.alias = opened.cluster.alias

    def close(self) -> None:
        self._clients.close()

    @property
    def where(self) -> str:
        return self._cluster.where

    def cluster_id(self) -> str:
        """The cluster's id, as last learned. If a connection is open already, this asks nobody; `OpenCluster.require_contact` does.

        Otherwise ClusterUnreachable within ten seconds, AuthenticationFailed sooner.
        """
        return self._connection().cluster_id

    def addresses(self) -> frozenset[str]:
        """The advertised addresses of the brokers that are up, as last learned."""
        return self._connection().addresses

    def brokers(self, topics: Mapping[str, TopicDescription] | None = None) -> Brokers:
        """The cluster's brokers that are up, as last learned, and those that are down but hold replicas of a topic that the user sees.

        `topics`: it uses only their replicas, and sends no request. Otherwise Ferry asks for all topics, and so learns the brokers anew.
        """
        described = self.topics() if topics is None else topics
        held = {node for topic in described.values() for nodes in topic.replicas for node in nodes}
        up = frozenset(self._connection().brokers())
        return Brokers(up, up | held)

    def topic_names(self) -> tuple[str, ...]:
        """The name of every topic that the user may describe, in order."""
        return tuple(sorted(self._asked("listing topics", metadata.topics, None)))

    def exists(self, topic: str) -> bool:
        """Whether there is such a topic that the user may see, or was some seconds ago."""
        return self._asked(f"looking for topic {topic}", metadata.exists, topic)

    def topics(self, names: Iterable[str] | None = None, rights: Rights = lambda _: "Describe") -> dict[str, TopicDescription]:
        """Every topic that the user may describe, or those of `names` that exist. `rights`: to ask for on a topic that is hidden."""
        found = {}
        for name, answer in self._described(names).items():
            if isinstance(answer, TopicDescription):
                found[name] = answer
            elif answer.code() != MISSING:  # deleted in between
                raise explained(self._cluster, f"describing topic {name}", answer, grant=f"{rights(name)} on topic {name}")
        return found

    def topics_that(self, answer: int, names: Iterable[str]) -> tuple[str, ...]:
        """The topics of `names` that EXIST, that are MISSING, or that are HIDDEN from the user, whether they exist or not."""
        codes = ((name, told.code() if isinstance(told, KafkaError) else EXIST) for name, told in self._described(names).items())
        return tuple(name for name, code in codes if code == answer)

    def cluster_operations(self) -> frozenset[str] | None:
        """What the user may do to the cluster (KIP-430, names of AclOperation); None: the broker does not say."""
        return self._asked("describing the cluster", metadata.cluster_operations)

    def topic_operations(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """What the user may do to those of `names` that exist and that the user may describe."""
        return self._asked("describing topics", metadata.topic_operations, sorted(names))

    def _connection(self) -> ClusterConnection:
        """The open connection, to use what it has learned already. Errors as of `_asked`."""

        async def itself(connection: ClusterConnection) -> ClusterConnection:
            return connection

        return self._asked("looking for brokers", itself)

    def _described(self, names: Iterable[str] | None) -> dict[str, metadata.Described]:
        return self._asked_by_name("describing topics", metadata.topics, None if names is None else sorted(set(names)))

    def _asked_by_name(
        self, doing: str, question: Question[dict[str, T | KafkaError]], names: Sequence[str] | None, *more: Any
    ) -> dict[str, T | KafkaError]:
        """The answer by name, from `_asked`. Ferry asks again, for PATIENCE_SECONDS, about names that the broker cannot answer now."""
        begun, found, left = clock.monotonic(), dict[str, T | KafkaError](), names
        while left is None or left:
            found |= self._asked(doing, question, left, *more)
            left = [name for name, answer in found.items() if is_passing(answer)]
            if not left or clock.monotonic() - begun > PATIENCE_SECONDS:
                break
            clock.sleep(ATTEMPT_PAUSE_SECONDS)
        return found

    def _asked(self, doing: str, question: Question[T], *arguments: Any) -> T:
        """The answer to `question(connection, *arguments)`. A cluster that has answered before is asked again for PATIENCE_SECONDS.

        ClusterUnreachable, AuthenticationFailed.
        """
        begun, closed = clock.monotonic(), 0
        with self._clients:
            while True:
                try:
                    answer = self._opened.ask(question, *arguments, milliseconds=CONTACT_MILLISECONDS)
                except (RequestNotSent, RequestLost) as problem:
                    self._clients.answered = True  # the brokers were found
                    closed = closed + 1 if isinstance(problem, RequestClosed) and self._answers_others() else 0
                    if closed == CLOSED_TIMES:
                        raise self._closing(doing, problem) from problem
                    if clock.monotonic() - begun > PATIENCE_SECONDS:
                        raise ClusterUnreachable(f"{self.where}: {doing} failed: {problem}") from problem
                except ClusterUnreachable as problem:
                    if problem.retry is not RetryRule.RETRY or not self._clients.answered or clock.monotonic() - begun > PATIENCE_SECONDS:
                        raise
                else:
                    self._clients.answered = True
                    return answer
                clock.sleep(ATTEMPT_PAUSE_SECONDS)

    def _answers_others(self) -> bool:
        with suppress(RequestNotSent, RequestLost, ClusterUnreachable):
            self._opened.ask(ClusterConnection.refresh_brokers, milliseconds=CONTACT_MILLISECONDS)
            return True
        return False

    def _closing(self, doing: str, problem: Exception) -> ClusterUnreachable:
        error = ClusterUnreachable(
            f"{self.where}: {doing} failed: it answers other requests, but closes the connection at this one: {problem}"
        )
        error.next_step = "look for the request that the message names in the brokers' logs; some services do not take every request"
        return error

    def topic_configs(self, names: Iterable[str]) -> dict[str, dict[str, ConfigValue]]:
        """Effective config of topics, without topics that do not exist. NotAuthorized if the user may not describe one."""
        found, problems = self.visible_configs(names)
        for problem in problems.values():
            raise problem
        return found

    def visible_configs(self, names: Iterable[str], *, to_alter: bool = False, keys: Sequence[str] | None = None) -> Configs:
        """Effective config of topics (only these `keys`), and the errors by topic; topics that do not exist are in neither.

        `to_alter`: the caller will alter them. So a message names AlterConfigs, which includes DescribeConfigs.
        """
        found: dict[str, dict[str, ConfigValue]] = {}
        problems: dict[str, FerryError] = {}
        answers = self._asked_by_name("describing configs", metadata.configs, sorted(names), metadata.TOPIC_RESOURCE, keys)
        for name, answer in answers.items():
            if not isinstance(answer, KafkaError):
                found[name] = answer
            elif answer.code() != MISSING:
                grant = f"{'AlterConfigs' if to_alter else 'DescribeConfigs'} on topic {name}"
                problems[name] = explained(self._cluster, f"describing the config of topic {name}", answer, grant=grant)
        return found, problems

    def broker_configs(self) -> dict[str, ConfigValue]:
        """Effective config of one broker."""
        node, answer = self._asked("describing the config of a broker", metadata.broker_config)
        if isinstance(answer, KafkaError):
            doing = f"describing the config of broker {node}"
            raise explained(self._cluster, doing, answer, grant="DescribeConfigs on the cluster")
        return answer

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Log start offsets, and the errors by partition."""
        return self._list_offsets(partitions, EARLIEST, committed=False)

    def end_offsets(self, partitions: Iterable[TopicPartition], *, committed: bool = True) -> Offsets:
        """Last stable offsets (high watermarks without `committed`), and the errors by partition."""
        return self._list_offsets(partitions, LATEST, committed=committed)

    def both_ends(self, partitions: Iterable[TopicPartition]) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """High watermarks, and last stable offsets of about the same moment; without partitions that have no leader now."""
        with self._clients:
            (watermarks, _), (stable_ends, _) = self._clients.offsets.ask(partitions, [(LATEST, False), (LATEST, True)]).answer()
        return watermarks, stable_ends

    def offsets_for_time(
        self, partitions: Iterable[TopicPartition], milliseconds: int, *, committed: bool = True
    ) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, str]]:
        """The first offset whose record is at or after the time (None: there is none), and the errors by partition.

        Without `committed` records of open transactions count too. ListOffsets knows no time before 1970: its negative times stand for ends
        of the log. Here a time before 1970 means the log's start.
        """
        if milliseconds < 0:
            starts, problems = self.earliest_offsets(partitions)
            return dict(starts), problems
        found, problems = self._list_offsets(partitions, milliseconds, committed=committed)
        before = (key for key, offset in found.items() if offset < 0)
        with self._clients:
            overlooked = self._clients.offsets.overlooked(before, milliseconds, committed=committed)
        for key, newest in overlooked.items():
            problems[key] = (
                f"the source cannot tell its first record of time {milliseconds} or later: its leader says that there is none, although "
                f"offset {newest.offset} has the time {newest.moment}; compaction left a batch without records"
            )
        return {key: offset if offset >= 0 else None for key, offset in found.items() if key not in overlooked}, problems

    def create_topics(self, wanted: Iterable[WantedTopic], *, dry_run: bool = False) -> dict[str, FerryError]:
        """Create many topics; the errors by topic, none for one that exists. `dry_run`: nothing is created; the errors as if it were."""
        listed = list(wanted)
        rights = {one.name: one.rights for one in listed}

        def explain(name: str) -> tuple[str, str]:
            return f"creating topic {name}", f"{rights[name](name)} on topic {name}"

        requests = (
            {one.name: NewTopic(one.name, one.partitions, one.replication_factor, config=dict(one.config)) for one in chunk}
            for chunk in _by_width(listed)
        )
        return self._changed("create_topics", requests, explain, KafkaError.TOPIC_ALREADY_EXISTS, validate_only=dry_run)

    def create_partitions(self, widths: Mapping[str, int]) -> dict[str, FerryError]:
        """Grow topics to the widths in `widths`; the errors by topic."""

        def explain(name: str) -> tuple[str, str]:
            return f"growing topic {name} to {count_of(widths[name], 'partition')}", f"Alter on topic {name}"

        names = chunks(sorted(widths), TOPICS_A_REQUEST)
        requests = ({name: NewPartitions(name, widths[name]) for name in chunk} for chunk in names)
        problems = self._changed("create_partitions", requests, explain)
        # An attempt whose answer was lost may have grown these already.
        grown = self.topics(name for name, problem in problems.items() if isinstance(problem, ChangeRefused))
        return {name: problem for name, problem in problems.items() if name not in grown or grown[name].partitions != widths[name]}

    def _list_offsets(self, partitions: Iterable[TopicPartition], at: int, *, committed: bool) -> Offsets:
        with self._clients:
            found, errors = self._clients.offsets.offsets((TopicPartition(*key) for key in partitions), at, committed=committed)
        return found, {
            key: str(explained(self._cluster, "listing its offsets", error, grant=f"Describe on topic {key.topic}"))
            for key, error in errors.items()
        }

    def _answers(self, method: str, wanted: Mapping[Key, Any], **options: Any) -> dict[Key, Any]:
        """The answers of the client's `method` for the arguments `wanted`, by key; a KafkaError where one failed."""
        answers: dict[Key, Any] = {}
        with self._clients:
            for seconds in self._attempts():
                left = {key: argument for key, argument in wanted.items() if key not in answers or is_passing(answers[key])}
                futures = getattr(self._clients.admin, method)(list(left.values()), request_timeout=seconds, **options) if left else {}
                answers |= {key: _result_of(future, seconds + 1.0) for key, future in zip(left, futures.values(), strict=True)}
                if not any(is_passing(answer) for answer in answers.values()):
                    self._clients.answered = True
                    break
        return answers

    def _attempts(self) -> Iterator[float]:
        """Seconds for each attempt at a request, each with a new client. A cluster that has never answered gets one attempt."""
        begun, seconds = clock.monotonic(), FIRST_ATTEMPT_SECONDS
        self._clients.forget_errors()
        while True:
            yield seconds
            if clock.monotonic() - begun > PATIENCE_SECONDS or not self._is_there():
                return
            clock.sleep(ATTEMPT_PAUSE_SECONDS)
            self._clients.close()
            seconds = min(max(seconds, clock.monotonic() - begun), REQUEST_SECONDS)

    def _is_there(self) -> bool:
        """Whether any broker has answered so far, or does now."""
        self._clients.admin.poll(0)
        if refused_login(self._clients.errors) is not None:
            return False
        if not self._clients.answered:
            try:
                self._clients.admin.list_topics(timeout=ANY_BROKER_SECONDS)
            except KafkaException:
                return False
        self._clients.answered = True
        return True

    def _changed(
        self, method: str, requests: Iterable[Mapping[Key, Any]], explain: Explain[Key], fine: int | None = None, **options: Any
    ) -> dict[Key, FerryError]:
        """The errors of changes, by key, as of `refusal`; the code `fine` is none. `requests`: arguments of the `method` by key."""
        problems = {}
        for wanted in requests:
            for key, answer in self._answers(method, wanted, **options).items():
                if isinstance(answer, KafkaError) and answer.code() != fine:
                    doing, grant = explain(key)
                    self._clients.admin.poll(0)  # it reports errors only when it is polled
                    problems[key] = refusal(self._cluster, doing, answer, most_telling(self._clients.errors), grant=grant)
        return problems


def _result_of(future: Future[Any], seconds: float) -> Any:
    """The result, or a KafkaError, also if the client itself does not end the request in time."""
    try:
        return future.result(seconds)
    except KafkaException as problem:
        return problem.args[0]
    except TimeoutError:
        return KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's public name for it


def _by_width(wanted: Iterable[WantedTopic]) -> Iterator[list[WantedTopic]]:
    chunk: list[WantedTopic] = []
    for topic in wanted:
        if chunk and sum(one.partitions for one in chunk) + topic.partitions > PARTITIONS_A_REQUEST:
            yield chunk
            chunk = []
        chunk.append(topic)
    if chunk:
        yield chunk
