"""Connections of the data path, with the protocol, connection and event-loop classes of kafka-python.

One event loop serves a source and a target cluster. kafka-python negotiates versions, authenticates, backs off and obeys throttling. This
module gives it faster sockets, and says of every failed request whether it may have reached the broker: `RequestNotSent` did not,
`RequestLost` may have.

A broker that accepts connections but does not answer must not delay a run for long: if any broker can answer a request, Ferry also asks the
next one, and takes the first answer.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import cycle
from types import SimpleNamespace
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.metadata import ApiVersionsRequest

from ferry import clock
from ferry.clusters.net import outage
from ferry.clusters.net.error_policy import API_VERSIONS, Action
from ferry.clusters.net.event_loop import EventLoop, Wakeup, ended
from ferry.clusters.net.failures import REFUSALS, denied, granting, is_refusal, is_tls_refusal, reason, refused
from ferry.clusters.net.frames import Meter
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.transports import EncryptedTransport, PlainTransport, connected_socket, shortest_round_trip
from ferry.config import ClientRole, Cluster
from ferry.errors import ClusterUnreachable, FerryError, NotAuthorized, count_of

T = TypeVar("T")

# A broker that accepts connections but does not answer must not block a run.
BOOTSTRAP_MILLISECONDS = 30_000
# After this time without an answer Ferry also tries the next bootstrap server (as RFC 8305 does with addresses).
NEXT_SERVER_SECONDS = 0.25
# A healthy broker answers such a request in milliseconds; after this time Ferry also asks another one.
NEXT_BROKER_SECONDS = 2.0
# How long a question to two brokers waits for both, and how many it asks in all if some do not answer.
BOTH_SECONDS = 1.0
MOST_ASKED = 4
# Longer than any broker waits: for the time-out of a request (a produce 20 s), and for the replicas of its own log (`request.timeout.ms`,
# 30 s). So the broker always answers first. Shorter than the transaction time-out, so that a lane ends its own transaction.
REQUEST_MILLISECONDS = 40_000
# A fetch response holds at least one whole batch, which may be large.
LARGEST_RESPONSE_BYTES = 1 << 30
# How often Ferry checks whether a pause is over that a broker asked for; such pauses last at least tenths of seconds.
THROTTLE_CHECK_SECONDS = 0.02
# A lane limits its requests in flight itself; kafka-python must not refuse them.
CONNECTION_IN_FLIGHT = 1_000


class RequestNotSent(Exception):
    """The request did not leave this process, so it may be sent again."""


class RequestLost(Exception):
    """The request may have reached the broker, but no answer came back."""


class RequestClosed(RequestLost):
    """The connection was closed before the answer."""


async def answered(started: Sequence[Future]) -> list[Any]:
    """The results of these questions, when all have ended; without those that ended with RequestNotSent or RequestLost."""
    await ended(started)
    found = []
    for future in started:
        with suppress(RequestNotSent, RequestLost):
            found.append(await future)
    return found


class _Connections(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's manager with our transports. It stops the search for brokers when the login is clearly refused."""

    meter: Meter
    silent_seconds: float = math.inf
    closed = False  # kafka-python sets it after the first look for idle connections

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.last_failure: BaseException | None = None
        self._reached = False  # whether any server took a connection
        self.told = Future()  # the answer to ApiVersions: kafka-python does not keep the features in it
        self._refusals = 0

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        """The connection to a broker, from kafka-python. This class also remembers why a connection failed.

        A refused login ends the search for brokers. After that search, a broker that comes back may still accept the login.
        """
        final = self._refusals >= REFUSALS or isinstance(self.last_failure, FerryError)
        if final and self.last_failure is not None and not self.bootstrapped:
            raise self.last_failure
        known = self._conns.get(node_id)
        connection = super().get_connection(node_id, *arguments, **options)
        if connection is not known:
            connection.init_future.add_callback(self._succeeded)
            connection.init_future.add_errback(self._failed)
        return connection

    def close_idle_connections(self) -> None:
        """Close idle connections, but only until the manager is closed. kafka-python goes on for ever, and so never frees its objects."""
        if not self.closed:
            super().close_idle_connections()

    def _succeeded(self, _: object) -> None:
        self._refusals, self.last_failure = 0, None

    def _failed(self, problem: BaseException) -> None:
        if is_refusal(problem) or not is_refusal(self.last_failure):
            self.last_failure = problem
        self._refusals += is_refusal(problem)

    async def _do_bootstrap(self, deadline: float | None) -> bool:
        """Learn the brokers from the server that answers first. KafkaTimeoutError at `deadline` (monotonic), or the refused login.

        It ends after `silent_seconds` if no server has taken a connection. kafka-python gives all the time to one server, which it picks at
        random.
        """
        servers, silent_until = self.cluster.bootstrap_brokers(), clock.monotonic() + self.silent_seconds
        try:
            for server in cycle(servers):
                if self.cluster.brokers():
                    self._keep(servers)
                    self.cluster.start_refresh_loop()
                    return True
                ends = math.inf if deadline is None else deadline
                if self.closed or clock.monotonic() > (ends if self._reached else min(ends, silent_until)):
                    raise kafka_errors.KafkaTimeoutError(f"none of {count_of(len(servers), 'bootstrap server')} answers")
                if server.node_id not in self._conns and not self.connection_delay(server.node_id):
                    self.call_soon(self._ask_server, server.node_id, self._connect_to_server(server.node_id, deadline))
                await self._bootstrap_wakeup(NEXT_SERVER_SECONDS)
        finally:
            for server in servers:
                self._drop_server(server.node_id)
        raise kafka_errors.KafkaConfigurationError("no bootstrap servers")

    def _connect_to_server(self, node_id: str, deadline: float | None) -> Any:
        milliseconds = self.socket_connection_setup_timeout_ms(node_id)
        if deadline is not None:
            milliseconds = min(milliseconds, max(0.0, deadline - clock.monotonic()) * 1_000)
        return self.get_connection(
            node_id, timeout_ms=milliseconds, pop_on_close=False, refresh_metadata_on_err=False, reset_backoff_on_connect=False
        )

    async def _ask_server(self, node_id: str, connection: Any) -> None:
        try:
            await connection
            self.told = connection.send_request(_api_versions())
            self.cluster.update_metadata(await connection.send_request(self.cluster.metadata_request()))
        finally:
            if not self.cluster.brokers():  # it failed, or knows no brokers itself: Ferry asks it again soon
                self._drop_server(node_id)
                self.update_backoff(node_id)
            self._bootstrap_wakeup.notify()

    def _keep(self, servers: Collection[Any]) -> None:
        """Keep the connection to a bootstrap server that is itself a broker: a new one costs a login, and round trips."""
        addresses = {(broker.host, broker.port): broker.node_id for broker in self.cluster.brokers()}
        for server in servers:
            connection, node_id = self._conns.get(server.node_id), addresses.get((server.host, server.port))
            if connection is not None and connection.connected and node_id is not None and node_id not in self._conns:
                connection.node_id = node_id
                connection.close_future.add_both(lambda _, node_id=node_id: self._conns.pop(node_id, None))
                connection.close_future.add_errback(lambda _: self.cluster.request_update())
                self._conns[node_id] = self._conns.pop(server.node_id)

    def _drop_server(self, node_id: str) -> None:
        connection = self._conns.pop(node_id, None)
        if connection is not None:
            connection.close(None if connection.connected else kafka_errors.KafkaConnectionError("no answer"))

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> KafkaTCPTransport:
        options = self.config
        socket_ = await connected_socket(
            self._net, node.host, node.port, options["socket_options"], proxy_url=options["proxy_url"], timeout_at=timeout_at
        )
        self._reached = True
        transport: PlainTransport | EncryptedTransport
        if self.ssl_enabled:
            settings = {key: value for key, value in options.items() if key.startswith("ssl_")}
            transport = EncryptedTransport(self._net, socket_, host=node.host, **settings)
        else:
            transport = PlainTransport(self._net, socket_, host=node.host)
        transport.meter = self.meter
        try:
            await (transport.handshake_until(timeout_at) if isinstance(transport, EncryptedTransport) else transport.handshake())
        except Exception as problem:
            transport.abort(problem)
            raise kafka_errors.KafkaConnectionError(f"TLS handshake: {problem}") from problem
        return transport


class ClusterConnection:
    """Raw requests to one cluster. `send` awaits the answer, `submit` gives the future."""

    def __init__(self, loop: EventLoop, cluster: Cluster, role: ClientRole, meter: Meter | None = None) -> None:
        """`meter`: of the data in memory; several connections may share it."""
        self.alias, self.loop = cluster.alias, loop
        self._cluster, self._role = cluster, role
        settings = dict(cluster.kafka_python(role))
        settings["receive_message_max_bytes"] = LARGEST_RESPONSE_BYTES
        settings["max_in_flight_requests_per_connection"] = CONNECTION_IN_FLIGHT
        settings["request_timeout_ms"] = REQUEST_MILLISECONDS
        settings["reconnect_backoff_max_ms"] = 1_000
        self._manager = _Connections(loop.selector, **settings)
        self._manager.meter = self.meter = Meter() if meter is None else meter
        self._outage = outage.Outage()
        self.coordinator_outage = outage.CoordinatorOutage()
        self._last_problem = ""
        self.last_answer = clock.monotonic()  # when a broker last answered; before the first answer: when this was made
        self._features: Mapping[str, int] | None = None
        self.leaders = Leaders(self)  # leaders from the last Metadata answers, for short questions; a lane has leaders of its own
        self.coordinators: dict[tuple[int, str], int] = {}  # brokers, by the kind of coordinator and the group or transactional id

    async def open(self, milliseconds: float = BOOTSTRAP_MILLISECONDS, silent_seconds: float = math.inf) -> None:
        """Find the brokers. ClusterUnreachable if none answers, or none takes a connection for `silent_seconds`; AuthenticationFailed."""
        self._manager.silent_seconds = silent_seconds
        try:
            await self._manager.bootstrap_async(timeout_ms=milliseconds)
        except (kafka_errors.KafkaError, FerryError) as problem:
            raise self._explained(problem) from problem

    async def refresh_brokers(self) -> None:
        """Learn the brokers again, after one was replaced. RequestNotSent, RequestLost."""
        self.learn_brokers(await self.send(self._manager.cluster.metadata_request()))

    def learn_brokers(self, answer: Any) -> None:
        """Take the brokers from a Metadata answer. kafka-python itself asks only every five minutes, but a leader may have come back."""
        known = {name: getattr(answer, name) for name in ("API_VERSION", "brokers", "controller_id", "cluster_id")}
        self._manager.cluster.update_metadata(SimpleNamespace(**known, topics=()))

    @property
    def request_limit(self) -> int | None:
        """Bytes of the largest Produce request that the cluster may get; None: no limit."""
        return self._cluster.request_limit

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, as last learned; empty: it gives none."""
        return str(self._manager.cluster.cluster_id or "")

    @property
    def addresses(self) -> frozenset[str]:
        """The advertised addresses of the brokers that are up, as last learned."""
        return frozenset(f"{broker.host.lower()}:{broker.port}" for broker in self._manager.cluster.brokers())

    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers that are up, as last learned."""
        return tuple(sorted(int(broker.node_id) for broker in self._manager.cluster.brokers()))

    def close(self) -> None:
        """Close all connections; requests in flight are lost."""
        self._manager.close()

    def disconnect(self) -> None:
        """Drop every connection, so that nothing waits for answers about an abandoned transaction. The next request connects again."""
        # With an error a connection ends at once, otherwise when everything is written.
        abandoned = kafka_errors.KafkaConnectionError("abandoned")
        for connection in list(self._manager._conns.values()):  # noqa: SLF001 - the manager offers to close one node or itself, not all
            connection.close(abandoned)

    def begin_anew(self) -> None:
        """Drop every connection, and forget outages and coordinators: a caller has waited for the cluster, and asks once more."""
        self.disconnect()
        self.coordinators.clear()
        self._outage, self.coordinator_outage = outage.Outage(), outage.CoordinatorOutage()

    def round_trip(self) -> float:
        """Seconds of the shortest round trip of TCP on open connections; 0: not known. However busy this machine is, the kernel knows."""
        transports = [connection.transport for connection in self._manager._conns.values()]  # noqa: SLF001 - as below
        found = (shortest_round_trip(transport) for transport in transports if transport is not None)
        return min((seconds for seconds in found if seconds > 0), default=0.0)

    def throttled(self, node: int) -> bool:
        """Whether broker `node` asked for a pause because of a quota (KIP-219). Ferry must not send to it until the pause is over."""
        connection = self._manager._conns.get(node)  # noqa: SLF001 - its public methods only refuse
        return connection is not None and "throttle" in connection.paused

    def all_throttled(self) -> bool:
        """Whether every broker asked for a pause."""
        brokers = self.brokers()
        return bool(brokers) and all(self.throttled(broker) for broker in brokers)

    def submit(self, request: Any, node: int, milliseconds: int | None = None) -> Future:
        """Send `request` to broker `node`; the future fails with a kafka-python error."""
        asked, outage = clock.monotonic(), self._outage
        outage.asked(asked)
        try:
            future = self._manager.send(request, node, request_timeout_ms=milliseconds)
        except kafka_errors.UnknownBrokerIdError as problem:
            self._manager.cluster.request_update()  # it may have joined, or come back, since the brokers were learned
            future = Future().failure(problem)
        except kafka_errors.KafkaError as problem:
            future = Future().failure(problem)

        def answered(_: object) -> None:
            self.last_answer = clock.monotonic()
            outage.answered(self.last_answer)

        def failed(problem: BaseException) -> None:
            self._last_problem = str(problem)
            outage.failed(asked, clock.monotonic())

        future.add_callback(answered)
        future.add_errback(failed)
        return future

    @property
    def unreachable(self) -> bool:
        """Whether no broker of the cluster has answered for PATIENCE_SECONDS, although Ferry asked."""
        return self._outage.seconds(clock.monotonic()) >= outage.PATIENCE_SECONDS

    @property
    def without_coordinators(self) -> bool:
        """Whether no coordinator of the cluster has accepted a request for PATIENCE_SECONDS, although Ferry asked."""
        return self.coordinator_outage.seconds(clock.monotonic()) >= outage.PATIENCE_SECONDS

    def require_answers(self) -> None:
        """ClusterUnreachable if the cluster is unreachable."""
        if self.unreachable:
            raise ClusterUnreachable(
                f"{self._cluster.where}: no broker has answered for {outage.PATIENCE_SECONDS:.0f} s: {self._last_problem}"
            )

    async def send(self, request: Any, node: int | None = None, milliseconds: int | None = None) -> Any:
        """The answer to `request`, after the pause that a quota asks for. RequestNotSent, RequestLost, or AuthenticationFailed.

        Without `node` any broker may answer, and Ferry may ask several: only for requests that may be executed twice.
        """
        while self.all_throttled() if node is None else self.throttled(node):
            await self.loop.sleep(THROTTLE_CHECK_SECONDS)
        if node is None:
            return await self._answer_of_any(request, milliseconds)
        # A copy, because a request takes the version of the broker that it is sent to.
        return await self.answer_to(self.submit(copy(request), node, milliseconds), request.name)

    async def answers_of_two(self, request: Any) -> list[Any]:
        """The answers of two brokers that are asked side by side: a broker that is cut off from the others answers what it knows.

        For one that fails, or takes longer than BOTH_SECONDS, another is asked, MOST_ASKED in all. If none answers: as of `send`.
        """
        asked, node = dict[int, Future](), self._any_node(())
        while node is not None and sum(future.succeeded() for future in asked.values()) < 2:
            asked[node], deadline = self.loop.start(self.send, request, node), clock.monotonic() + BOTH_SECONDS
            node = self._any_node(asked) if len(asked) < MOST_ASKED else None
            for future in asked.values() if len(asked) > 1 or node is None else ():
                await self.loop.done_by(deadline, future)
        return [future.value for future in asked.values() if future.succeeded()] or [await self.send(request)]

    async def _answer_of_any(self, request: Any, milliseconds: int | None) -> Any:
        """The first answer. If a broker fails or sends nothing for NEXT_BROKER_SECONDS, asks another. The last failure if all fail."""
        wakeup = Wakeup(self.loop)
        asked: dict[int, Future] = {}
        before = 0
        while True:
            # An answer of megabytes takes long, and a second answer would share the line with it.
            node = None if self._arrived(asked) > before else self._any_node(asked)
            if node is not None:
                asked[node] = self.submit(copy(request), node, milliseconds).add_both(lambda _: wakeup.fire())
            elif all(future.failed() for future in asked.values()):
                problem = asked.popitem()[1].exception if asked else kafka_errors.NodeNotReadyError("no broker is known to be up")
                raise self.classified(problem, request.name) from problem
            before = self._arrived(asked)  # other answers came over these connections earlier
            await wakeup.wait(NEXT_BROKER_SECONDS)
            for future in asked.values():
                if future.succeeded():
                    return future.value

    def _arrived(self, asked: Mapping[int, Future]) -> int:
        """How many bytes the brokers in `asked` have sent over open connections. Only brokers that have not answered count."""
        waiting = [node for node, future in asked.items() if not future.is_done]
        connections = [self._manager._conns.get(node) for node in waiting]  # noqa: SLF001 - as below
        return sum(getattr(connection.parser, "bytes_received", 0) for connection in connections if connection is not None)

    async def answer_to(self, submitted: Future, request: str = "") -> Any:
        """The answer to a request that was submitted. Raises as `send` does; `request`: its name, for messages."""
        try:
            return await submitted
        except kafka_errors.KafkaError as problem:
            raise self.classified(problem, request) from problem

    def classified(self, problem: BaseException, request: str = "") -> Exception:
        """The error for a failed request: whether the broker may have executed it."""
        if isinstance(problem, kafka_errors.SaslAuthenticationFailedError | kafka_errors.AuthorizationError):
            return refused(self._cluster, self._role, reason(problem), tls=False)
        if isinstance(problem, kafka_errors.NodeNotReadyError | kafka_errors.UnknownBrokerIdError | kafka_errors.IncompatibleBrokerVersion):
            return RequestNotSent(f"cluster {self.alias}: {problem}")
        what = f"{request.removesuffix('Request')}: {problem}" if request else problem
        return (RequestClosed if isinstance(problem, kafka_errors.KafkaConnectionError) else RequestLost)(f"cluster {self.alias}: {what}")

    def granting(self, right: str) -> str:
        """What an administrator of this cluster must do; `right` as `Read on topic orders`."""
        return granting(self._cluster, right)

    def denied(self, doing: str, right: str) -> NotAuthorized:
        return denied(self._cluster, doing, right)

    async def newest(self) -> Mapping[int, int]:
        """The newest version of each request, by API key, that the first broker takes to which Ferry connected."""
        versions: Mapping[int, tuple[int, int]] = self._manager.broker_version_data.api_versions
        return {key: newest for key, (_, newest) in versions.items()}

    async def features(self) -> Mapping[str, int]:
        """The levels of finalized features by name, asked once. RequestNotSent if the answer is an error, RequestLost."""
        if self._features is None:
            told = self._manager.told
            answer = told.value if told.succeeded() and not told.value.error_code else await self.send(_api_versions())
            if API_VERSIONS.action(answer.error_code) is not Action.GO_ON:
                raise RequestNotSent(f"cluster {self.alias}: ApiVersions: {API_VERSIONS.told(answer.error_code)}")
            self._features = {entry.name: int(entry.max_version_level) for entry in answer.finalized_features or ()}
        return self._features

    def _any_node(self, asked: Collection[int]) -> int | None:
        """A broker that was not `asked` and is not throttled, if possible a connected one without requests in flight."""
        manager = self._manager
        free = [node for node in self.brokers() if node not in asked and not self.throttled(node) and not manager.connection_delay(node)]
        clock.shuffle(free)

        def load(node: int) -> tuple[int, bool]:
            connection = manager._conns.get(node)  # noqa: SLF001 - its own choice cannot leave brokers out
            return (0, True) if connection is None else (len(connection.in_flight_requests), not connection.connected)

        return min(free, key=load, default=None)

    def _explained(self, problem: BaseException) -> FerryError:
        cause = self._manager.last_failure or problem
        if isinstance(cause, ClusterUnreachable):  # its token endpoint
            return type(cause)(f"{self._cluster.where}: {cause}")
        if isinstance(cause, FerryError):
            return cause
        if is_refusal(cause):
            return refused(self._cluster, self._role, reason(cause), tls=is_tls_refusal(cause))
        why = reason(cause)
        return ClusterUnreachable(f"cluster {self.alias} does not answer ({self._cluster.bootstrap}, {why[:1].lower()}{why[1:]})")


def _api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="ferry", client_software_version="1")
