"""Every code that a broker may answer: what the code does about it is what the table in ferry.clusters.net.error_policy says.

Answers are kafka-python's own classes, and go the way that a broker's go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kafka.errors import KafkaError, SaslAuthenticationFailedError, for_code
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from tests.copying import appender_bench, feed_bench
from tools.docs.answers_page import REQUESTS

from ferry.clusters.logs import offset_listing
from ferry.clusters.logs.fetching import log_bounds
from ferry.clusters.logs.offset_listing import HOPELESS_SECONDS, LEADER_PAUSE_SECONDS, OffsetListing
from ferry.clusters.net import leaders as leaders_module
from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.error_codes import NAMES, named
from ferry.clusters.net.error_policy import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, SASL, Action, RequestKind
from ferry.clusters.net.failures import is_refusal, reason
from ferry.clusters.net.leaders import ELECTION_SECONDS, KNOWN_SECONDS, Leader, Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.config import ClientRole
from ferry.copying import source_feed
from ferry.errors import FerryError, NotAuthorized, PartitionError
from ferry.verify import log_reader
from ferry.verify.log_reader import LogMoved, LogReader

pytestmark = pytest.mark.unit

UNHEARD_OF = 999
CODES = [*NAMES, UNHEARD_OF]
# Some of those that most requests have no row for: all of them go the same way.
WITHOUT_A_ROW = (-1, 4, 17, 76, 120, UNHEARD_OF)


def every_code_of(*requests: RequestKind) -> pytest.MarkDecorator:
    """Every code that has a row in one of these tables, and some without."""
    codes = sorted({*WITHOUT_A_ROW, *(code for request in requests for code in request.meanings)})
    return pytest.mark.parametrize("code", codes, ids=[named(code) for code in codes])


def raised(asked: Coroutine[Any, Any, object]) -> Exception | None:
    """What asking raises."""
    try:
        asyncio.run(asked)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the test says what it must be
        return problem
    return None


@pytest.mark.parametrize("request_", REQUESTS, ids=[entry.name for entry in REQUESTS])
def test_every_code_has_an_action_and_its_name_in_messages(request_: RequestKind) -> None:
    for code in CODES:
        assert isinstance(request_.action(code), Action)
        assert named(code) in request_.told(code, group="g", timeout=1)
    assert request_.action(0) is Action.GO_ON
    assert request_.action(UNHEARD_OF) is request_.otherwise, "safe: what is read is asked for again, what is written is looked at"
    assert request_.otherwise in {Action.AGAIN, Action.LEADER, Action.COORDINATOR, Action.NOTHING, Action.UNKNOWN}
    for meaning in request_.meanings.values():
        assert (meaning.action is Action.REFUSED) >= (meaning.error is not FerryError)


def test_names_are_those_that_other_clients_know() -> None:
    """Of each code that kafka-python knows; it has older names for some."""
    older = {"UNKNOWN", "NO_ERROR", "NOT_LEADER_FOR_PARTITION", "MESSAGE_SIZE_TOO_LARGE", "INVALID_TOPIC", "INVALID_REPLICATION_ASSIGNMENT"}
    known = {code: for_code(code).message for code in range(-1, 200)}
    assert {known[code] for code in NAMES if known[code] != NAMES[code]} <= older
    assert [code for code, name in known.items() if name != "UNKNOWN" and code not in NAMES] == []


def fetched(code: int) -> Any:
    topic = FetchResponse.FetchableTopicResponse
    records = feed_bench.batch(0) if code == 0 else b""
    part = topic.PartitionData(partition_index=0, error_code=code, records=records, last_stable_offset=100)
    return FetchResponse[12](responses=[topic(topic="t", partitions=[part])])


@every_code_of(FETCH)
def test_fetch_while_copying(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    bench = feed_bench.Bench(feed_bench.task())
    monkeypatch.setattr(source_feed, "clock", bench.source)
    cursor = bench.cursors[0]
    bench.feed.pump(0)
    bench.source.requests.pop()[2].success(fetched(code))
    bench.feed.arrivals()
    failure = cursor.failure
    if failure is not None:
        done = Action.DENIED if failure.problem == "the source refuses to read it: grant Read on topic t" else Action.REFUSED
        assert (failure.error, named(code) in failure.problem) == {
            Action.DENIED: ("PartitionError", False),
            Action.REFUSED: (FETCH.meaning(code).error.__name__, True),
        }[done]
    else:
        done = Action.BOUNDS if cursor.doubted else Action.LEADER if cursor.not_before else Action.GO_ON
    assert (done, cursor.fetched) == (FETCH.action(code), 1 if code == 0 else 0)
    bench.mend()
    assert bench.source.refreshed == (done is Action.LEADER)
    if done is Action.LEADER:
        bench.source.now += source_feed.PATIENCE_SECONDS + 1
        bench.feed.pump(0)
        bench.source.requests.pop()[2].success(fetched(code))
        bench.feed.arrivals()
        assert cursor.failure is not None
        assert (cursor.failure.error, named(code) in cursor.failure.problem) == ("PartitionUnavailable", True)


class Broker(feed_bench.Source):
    """Answers what it is sent from a list; the last answer for ever. `asked`: how often."""

    alias = "A"

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers, self.asked, self.loop = list(answers), 0, self

    async def send(self, *_: object) -> Any:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def submit(self, *_: object) -> Any:
        return self.send()

    async def answer_to(self, submitted: Any) -> Any:
        return await submitted

    def learn_brokers(self, answer: Any) -> None:
        assert answer.topics

    def require_answers(self) -> None:
        """It answers."""

    def denied(self, doing: str, right: str) -> NotAuthorized:
        return NotAuthorized(f"{doing}: grant {right}")


@every_code_of(FETCH)
def test_fetch_while_verifying(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    broker: Any = Broker(fetched(code))

    async def bounds(*_: object) -> tuple[int, int]:
        return 5, 9

    monkeypatch.setattr(log_reader, "log_bounds", bounds)
    reader = LogReader(broker, broker, TopicPartition("t", 0), feed_bench.TOPIC_ID, ((0, 1),))
    reader.request()
    problem = raised(reader.receive())
    match problem:
        case None:
            done = Action.GO_ON if reader.done else Action.LEADER
        case LogMoved():
            done = Action.BOUNDS
        case NotAuthorized():
            done = Action.DENIED
            assert "grant Read on topic t" in str(problem)
        case _:
            done = Action.REFUSED
            assert (type(problem), named(code) in str(problem)) == (FETCH.meaning(code).error, True)
    assert (done, broker.refreshed) == (FETCH.action(code), done is Action.LEADER)


def listed(code: int, *, offset: int = 7, moment: int = -1) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=offset, timestamp=moment)
    return ListOffsetsResponse[5](topics=[topic(name="t", partitions=[part])])


@every_code_of(LIST_OFFSETS)
def test_bounds_of_one_log(code: int) -> None:
    broker: Any = Broker(listed(code))
    problem = raised(log_bounds(broker, broker, "t", 0))
    match LIST_OFFSETS.action(code):
        case Action.GO_ON:
            assert problem is None
        case Action.DENIED:
            assert (type(problem), "grant Describe on topic t" in str(problem)) == (NotAuthorized, True)
        case _:  # whoever asked waits and asks again
            assert (type(problem), named(code) in str(problem)) == (RequestNotSent, True)


def led(code: int, *, node: int = 1) -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    partitions = [] if code else [topic.MetadataResponsePartition(partition_index=0, leader_id=node, leader_epoch=4)]
    return MetadataResponse[12](topics=[topic(name="t", topic_id=UUID(int=1), error_code=code, partitions=partitions)])


def listing_of(broker: Any) -> OffsetListing:
    """A listing that asks this broker."""
    broker.leaders = Leaders(broker)
    listing: Any = OffsetListing(SimpleNamespace(), ClientRole.ADMIN)  # type: ignore[arg-type] - its connection is put in
    listing._begin = lambda question, *wanted: Asked(lambda: asyncio.run(question(broker, *wanted)))
    return cast("OffsetListing", listing)


@every_code_of(LIST_OFFSETS, METADATA)
def test_bounds_of_many_logs(code: int) -> None:
    """Asked again with the leader learned anew, for the codes of Metadata and of ListOffsets; the others are told at once."""
    for answers in ([led(0), listed(code)], [led(code)])[: 2 if code else 1]:
        broker: Any = Broker(*answers, led(0), listed(0))
        listing = listing_of(broker)
        found, problems = listing.offsets([TopicPartition("t", 0)], -1, committed=False)
        again = LIST_OFFSETS.action(code) is Action.LEADER
        assert broker.slept == ([LEADER_PAUSE_SECONDS] if again else [])
        if again or code == 0:
            assert (found, problems) == ({("t", 0): 7}, {})
        else:
            assert (found, problems[TopicPartition("t", 0)].code()) == ({}, code)


class Electing(Broker):
    """Its partition has no leader until `elected`; sleeping moves its clock."""

    def __init__(self) -> None:
        super().__init__()
        self.elected = 0.0

    async def send(self, *_: object) -> Any:
        return led(0, node=1 if self.now >= self.elected else -1)

    def submit(self, *_: object) -> Any:
        return Broker(listed(0)).send()

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_ferry_waits_for_a_leader_once_in_each_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    broker: Any = Electing()
    for module in (offset_listing, leaders_module):
        monkeypatch.setattr(module, "clock", broker)
    listing, key = listing_of(broker), TopicPartition("t", 0)

    def answered(away: float, passed: float) -> bool:
        """Whether there is an answer, if `passed` seconds later the leader is away for so many."""
        broker.now += passed
        broker.elected = broker.now + away
        return listing.offsets([key], -1, committed=False)[0] == {key: 7}

    election, later = 2.0, KNOWN_SECONDS + 1
    assert answered(election, later)
    assert not answered(ELECTION_SECONDS + 1, later)
    begun = broker.now
    assert [answered(election, 0.0), broker.now] == [False, begun], "the next question of a plan"
    assert answered(election, HOPELESS_SECONDS + 1)
    assert not answered(ELECTION_SECONDS + 1, later)
    assert answered(0.0, 1.0)
    assert answered(election, later), "it was there in between"


def test_a_broker_that_searches_offsets_answers_before_ferry_gives_up() -> None:
    """What the request lets the broker take is less than what Ferry waits."""
    asked: list[tuple[int, int]] = []

    class Slow(Broker):
        def submit(self, request: Any, node: int, milliseconds: int | None = None) -> Any:
            asked.append((request.timeout_ms, milliseconds or 0))
            return super().submit(request, node, milliseconds)

    broker: Any = Slow(led(0), listed(0))
    listing = listing_of(broker)
    assert listing.offsets([TopicPartition("t", 0)], 5, committed=False) == ({("t", 0): 7}, {})
    ((broker_waits, ferry_waits),) = asked
    assert 0 < broker_waits <= ferry_waits - 1_000


@pytest.mark.parametrize(
    ("newest", "bounds", "again", "overlooked"),
    [
        ((3, 9), (0, 4), -1, True),
        ((3, 9), (0, 4), 3, False),
        ((3, 9), (0, 3), -1, False),
        ((3, 9), (4, 4), -1, False),
        ((3, 4), (0, 4), -1, False),
        ((-1, -1), (0, 4), -1, False),
    ],
    ids=["overlooked", "appended between both questions", "not committed yet", "deleted", "older", "nothing there"],
)
def test_a_leader_is_doubted_only_where_it_contradicts_itself(
    newest: tuple[int, int], bounds: tuple[int, int], again: int, overlooked: bool
) -> None:
    """It said that no record is of time 5 or later; `newest`: offset and time of the record with the largest time."""
    offset, moment = newest
    answers = [listed(0, offset=offset, moment=moment), *(listed(0, offset=bound) for bound in bounds), listed(0, offset=again)]
    broker: Any = Broker(led(0), *answers)
    listing = listing_of(broker)
    assert listing.overlooked([TopicPartition("t", 0)], 5, committed=True) == ({("t", 0): newest} if overlooked else {})


@every_code_of(METADATA)
def test_leaders(code: int) -> None:
    broker: Any = Broker(led(0), led(code))
    leaders = Leaders(broker, ["t"])
    for _ in range(2):
        asyncio.run(leaders.refresh())
    action = METADATA.action(code)
    assert leaders.of("t", 0) == (Leader(1, 4) if code == 0 else Leader(-1, -1))
    assert leaders.topic_id("t") == (None if action is Action.GONE else UUID(int=1)), "only who says that it is gone, says so"
    assert leaders.refused("t") == (code if action in {Action.DENIED, Action.REFUSED} else 0)


@every_code_of(METADATA)
def test_lanes_that_learn_no_leader(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Reading and appending: they name the right, or what was refused, at once, and wait for everything else."""
    leaders = Leaders(Broker(led(code, node=-1)), ["t"])  # type: ignore[arg-type] - as far as it is asked
    asyncio.run(leaders.refresh())
    feed = feed_bench.Bench(feed_bench.task())
    monkeypatch.setattr(source_feed, "clock", feed.source)
    feed.source.leaders, feed.source.refusal = {0: leaders.of("t", 0)}, leaders.refused("t")
    feed.feed.pump(0)
    writing = appender_bench.new_bench(monkeypatch.setattr)
    writing.leaders.leader, writing.leaders.refusal = leaders.of("t", 0), leaders.refused("t")
    writing.enqueue((0,))
    writing.appender.pump()
    failure, refusal = feed.cursors[0].failure, writing.appender.refusals.get(appender_bench.KEY)
    match METADATA.action(code):
        case Action.DENIED:
            assert failure is not None
            assert "grant Describe on topic t" in failure.problem
            assert refusal is not None
            assert (f"grant Describe on topic {appender_bench.KEY[0]}" in refusal.problem, refusal.denied) == (True, True)
        case Action.REFUSED:
            assert failure is not None
            assert refusal is not None
            assert (named(code) in failure.problem, named(code) in refusal.problem, refusal.passing) == (True, True, False)
        case _:
            assert (failure, refusal, feed.cursors[0].not_before > 0) == (None, None, True)


@every_code_of(METADATA)
def test_a_verify_that_learns_no_leader(code: int) -> None:
    """Its reader, and whoever asks where a log begins and ends: they name the right, or what was refused, and wait for everything else."""
    broker: Any = Broker(led(code, node=-1))
    leaders = Leaders(broker, ["t"])
    asyncio.run(leaders.refresh())
    reader = LogReader(broker, leaders, TopicPartition("t", 0), UUID(int=1), ((0, 1),))
    reader.request()
    problems = raised(reader.receive()), raised(log_bounds(broker, leaders, "t", 0))
    match METADATA.action(code):
        case Action.DENIED:
            assert {(type(problem), "grant Describe on topic t" in str(problem)) for problem in problems} == {(NotAuthorized, True)}
        case Action.REFUSED:
            assert {(type(problem), named(code) in str(problem)) for problem in problems} == {(PartitionError, True)}
        case _:
            assert (problems[0], type(problems[1]), broker.slept) == (None, RequestNotSent, [log_reader.PAUSE_SECONDS])


@every_code_of(API_VERSIONS)
@pytest.mark.parametrize("at_the_beginning", [False, True])
def test_api_versions(code: int, at_the_beginning: bool) -> None:
    """An error is no answer: it says nothing about what the broker lacks, and the next one is asked for."""
    connection: Any = object.__new__(ClusterConnection)
    first, good = (ApiVersionsResponse[3](error_code=each, api_keys=[]) for each in (code, 0))
    told = Future().success(first) if at_the_beginning else Future()
    broker = Broker(good) if at_the_beginning else Broker(first, good)
    connection.alias, connection.send, connection._features, connection._manager = "A", broker.send, None, SimpleNamespace(told=told)
    problem = raised(connection.features())
    if at_the_beginning or API_VERSIONS.action(code) is Action.GO_ON:
        assert problem is None
    else:
        assert (type(problem), named(code) in str(problem)) == (RequestNotSent, True)
    assert asyncio.run(connection.features()) == {}
    assert broker.asked == (0 if at_the_beginning and not code else 1 if at_the_beginning or not code else 2)


@every_code_of(SASL)
def test_logins(code: int) -> None:
    """As kafka-python tells of them: it takes every error that answers SaslAuthenticate for the one row."""
    login: Any = KafkaConnection(
        None, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_plain_username="u", sasl_plain_password="p"
    )
    login.transport = SimpleNamespace(host="h", host_port=lambda: "h:9092")
    greeted, answered = SaslHandshakeResponse[1], SaslAuthenticateResponse[1]
    for answers, row, text in (
        ([greeted(error_code=code, mechanisms=["PLAIN"]), answered(error_code=0, auth_bytes=b"")], code, SASL.meaning(code).told),
        (
            [greeted(error_code=0, mechanisms=["PLAIN"]), answered(error_code=code, error_message="its own words", auth_bytes=b"")],
            code and SaslAuthenticationFailedError.errno,
            "its own words",
        ),
    ):
        broker = Broker(*answers)
        login._send_request = lambda request, *, broker=broker, **_: broker.send(request)
        problem = raised(login._sasl_authenticate())
        assert (problem is None, is_refusal(problem)) == (code == 0, SASL.action(row) is Action.REFUSED)
        assert problem is None or (isinstance(problem, KafkaError) and (not is_refusal(problem) or text in reason(problem)))
