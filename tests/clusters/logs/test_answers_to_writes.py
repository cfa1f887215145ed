"""Produce and the requests to coordinators: for every code the code does what the table in ferry.clusters.net.error_policy says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from kafka.protocol.admin.transactions import DescribeTransactionsResponse
from kafka.protocol.consumer.group import OffsetFetchResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    ProduceResponse,
    TxnOffsetCommitResponse,
)
from tests.clusters.net.test_error_policy import WITHOUT_A_ROW, every_code_of, raised
from tests.copying.appender_bench import KEY, new_bench

from ferry.clusters.groups import coordination
from ferry.clusters.groups.coordination import Coordinator, Fenced, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.groups.group_model import CommittedOffset
from ferry.clusters.logs.producing import Answer, decode_answer, produce_answers
from ferry.clusters.net import error_policy
from ferry.clusters.net.error_codes import CODES, named
from ferry.clusters.net.error_policy import FIND_COORDINATOR, PERHAPS_APPENDED, PRODUCE, Action, RequestKind
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.outage import CoordinatorOutage
from ferry.errors import ClusterUnreachable, ConfigError, FerryError, NotAuthorized, ReplicatorActive

pytestmark = pytest.mark.unit

IDENTITY = ProducerIdentity(7, 0)


@every_code_of(PRODUCE)
def test_answers_to_produce(code: int) -> None:
    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse(index=4, error_code=code, base_offset=99, error_message="as it is")
    encoded = ProduceResponse[9](responses=[topic(name="A.t", partition_responses=[part])]).encode()
    leaders: Any = Leaders(None, ["A.t"])  # type: ignore[arg-type] - asked for names only
    (answer,) = produce_answers(decode_answer(memoryview(bytes(encoded)), 9), leaders).values()
    meaning = PRODUCE.meaning(code)
    right = meaning.told if meaning.action is Action.DENIED else ""
    told = "" if code == 0 else PRODUCE.told(code) if meaning.told else f"{named(code)}: as it is"
    assert answer == Answer(meaning.action, 99, told, right, unclear=code in PERHAPS_APPENDED)
    assert not answer.unclear or meaning.action is Action.LEADER, "it is sent again"


@every_code_of(PRODUCE)
def test_what_becomes_of_a_batch(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    problem: Exception | None = None
    benches = []
    for skips in (False, True):
        made = new_bench(monkeypatch.setattr, skips=skips)
        benches.append(made)
        made.enqueue((0,))
        made.run()
        made.enqueue((1, 2))
        made.broker.script.append(code)
        made.clock.now += 1
        try:
            made.run()
        except (Fenced, OutcomeUnknown) as failure:
            problem = failure
    bench, skipping = benches
    refusal, action = bench.appender.refusals.get(KEY), PRODUCE.action(code)
    if problem is not None:
        assert named(code) in str(problem)
        assert (type(problem), action in {Action.FENCED, Action.UNKNOWN, Action.OUT_OF_ORDER}) == (
            Fenced if action is Action.FENCED else OutcomeUnknown,
            True,
        )
    elif refusal is not None:
        left_out = skipping.appender.refusals.get(KEY) is None
        assert action is (Action.DENIED if refusal.denied else Action.RECORD_REFUSED if left_out else Action.REFUSED)
        assert (refusal.passing, named(code) in refusal.problem, bench.broker.log[KEY]) == (False, True, [0])
    else:
        assert bench.broker.log[KEY] == [0, 1, 2]
        halved = len(bench.accepted) == 3
        assert action is (Action.TOO_LARGE if halved else Action.LEADER if bench.appender.leaders_stale else Action.GO_ON)


class Coordinators:
    """Whoever is asked, and the loop: answers from a list, the last one for ever; sleeping passes time."""

    alias = "B"

    def __init__(self, *given: Any, found: tuple[int, ...] = (0,)) -> None:
        self.now, self.asked, self.looked_up = 1_000.0, 0, 0
        self._given, self._found = list(given), list(found)
        self.coordinator_outage = CoordinatorOutage()
        self.coordinators: dict[tuple[int, str], int] = {}

    def token_hex(self, count: int) -> str:
        return "00" * count

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def send(self, request: Any, node: int | None = None, milliseconds: int | None = None) -> Any:  # noqa: ARG002 - as of a connection
        if isinstance(request, FindCoordinatorRequest):
            self.looked_up += 1
            code = self._found.pop(0) if len(self._found) > 1 else self._found[0]
            coordinator = FindCoordinatorResponse.Coordinator(key=request.key, node_id=3, error_code=code)
            return FindCoordinatorResponse[4](coordinators=[coordinator])
        assert node == 3
        self.asked += 1
        return self._given.pop(0) if len(self._given) > 1 else self._given[0]

    def require_answers(self) -> None:
        """It is not the whole cluster that is silent."""

    def denied(self, doing: str, right: str) -> NotAuthorized:
        return NotAuthorized(f"{doing}: grant {right}")


def added(code: int) -> Any:
    topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    part = topic.AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
    beside = topic.AddPartitionsToTxnPartitionResult(partition_index=1, partition_error_code=55 if code in {3, 29, 100} else code)
    return AddPartitionsToTxnResponse[3](results_by_topic_v3_and_below=[topic(name="A.t", results_by_partition=[beside, part])])


def positioned(code: int) -> Any:
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    parts = [topic.TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)]
    return TxnOffsetCommitResponse[4](topics=[topic(name="A.t", partitions=parts)])


def looked(code: int) -> Any:
    return of_partition(0, whole=code)


def of_partition(code: int, *, whole: int = 0) -> Any:
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    part = group.OffsetFetchResponseTopics.OffsetFetchResponsePartitions(
        partition_index=0, committed_offset=-1 if code or whole else 5, metadata="", error_code=code
    )
    topics = [] if whole else [group.OffsetFetchResponseTopics(name="A.t", partitions=[part])]
    return OffsetFetchResponse[8](groups=[group(group_id="g", error_code=whole, topics=topics)])


def commit(coordinator: Coordinator) -> Coroutine[Any, Any, object]:
    return coordinator.commit_positions(IDENTITY, {("A.t", 0): CommittedOffset(5, -1, "mark")}, transactions_v2=True)


Ask = Callable[[Coordinator], Coroutine[Any, Any, object]]
ASKED: list[tuple[RequestKind, Ask, Callable[[int], Any]]] = [
    (error_policy.INIT_PRODUCER_ID, lambda asked: asked.init(), lambda code: InitProducerIdResponse[4](error_code=code)),
    (error_policy.ADD_PARTITIONS_TO_TXN, lambda asked: asked.add_partitions(IDENTITY, [("A.t", 0), ("A.t", 1)]), added),
    (error_policy.ADD_OFFSETS_TO_TXN, lambda asked: asked.add_offsets(IDENTITY), lambda code: AddOffsetsToTxnResponse[3](error_code=code)),
    (error_policy.TXN_OFFSET_COMMIT, commit, positioned),
    (
        error_policy.END_TXN,
        lambda asked: asked.end(IDENTITY, committed=True, transactions_v2=False),
        lambda code: EndTxnResponse[3](error_code=code),
    ),
    (error_policy.OFFSET_FETCH, lambda asked: asked.positions([("A.t", 0)]), looked),
    (error_policy.OFFSET_FETCH, lambda asked: asked.positions([("A.t", 0)]), of_partition),
]


def coordinator_of(monkeypatch: pytest.MonkeyPatch, made: Coordinators) -> Coordinator:
    both: Any = made
    monkeypatch.setattr(coordination, "clock", made)
    return Coordinator(both, both, "lane-0", "g")


@pytest.mark.parametrize(
    ("request_", "ask", "answer", "code"),
    [
        pytest.param(*asked, code, id=f"{asked[0].name}-{number}-{named(code)}")
        for number, asked in enumerate(ASKED)
        for code in sorted({*WITHOUT_A_ROW, *asked[0].meanings})
    ],
)
def test_requests_to_coordinators(
    monkeypatch: pytest.MonkeyPatch, request_: RequestKind, ask: Ask, answer: Callable[[int], Any], code: int
) -> None:
    made = Coordinators(answer(code), answer(0))
    problem = raised(ask(coordinator_of(monkeypatch, made)))
    lasting = Coordinators(answer(code))
    given_up = raised(ask(coordinator_of(monkeypatch, lasting)))
    meaning = request_.meaning(code)
    match meaning.action:
        case Action.GO_ON | Action.NOTHING:
            assert (problem, made.asked) == (None, 1)
        case Action.AGAIN | Action.COORDINATOR as action:
            assert (problem, made.asked, made.looked_up) == (None, 2, 2 if action is Action.COORDINATOR else 1)
            assert (type(given_up), named(code) in str(given_up)) == (ClusterUnreachable, True)
            assert lasting.now - 1_000 == pytest.approx(coordination.COORDINATION_SECONDS, abs=2)
        case Action.GONE:
            assert (problem, made.asked) == (None, 2), "a broker that just started may not know it yet"
            assert isinstance(given_up, PositionsRefused)
            assert (given_up.partitions, given_up.right) == ((("A.t", 0),), "")
            assert lasting.now - 1_000 == pytest.approx(coordination.GONE_SECONDS, abs=2)
        case Action.FENCED:
            assert (type(problem), named(code) in str(problem), made.asked) == (Fenced, True, 1)
        case Action.UNKNOWN:
            assert (type(problem), request_.told(code) in str(problem), made.asked) == (OutcomeUnknown, True, 1)
        case Action.DENIED if "{topic}" in meaning.told:
            assert isinstance(problem, PositionsRefused)
            assert (problem.partitions, f"{problem.right} on topic {{topic}}", made.asked) == ((("A.t", 0),), meaning.told, 1)
        case Action.DENIED:
            assert (type(problem), str(problem)) == (
                NotAuthorized,
                f"{request_.name}: grant {request_.right(code, group='g', id='lane-0')}",
            )
        case Action.REFUSED:
            told = request_.told(code, group="g", timeout=coordination.TRANSACTION_MILLISECONDS)
            assert (type(problem), str(problem)) == (meaning.error, f"cluster B: {request_.name} for lane-0: {told}")


@every_code_of(FIND_COORDINATOR)
def test_who_the_coordinator_is(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    made = Coordinators(InitProducerIdResponse[4](error_code=0), found=(code, 0))
    problem = raised(coordinator_of(monkeypatch, made).init())
    meaning = FIND_COORDINATOR.meaning(code)
    match meaning.action:
        case Action.GO_ON:
            assert (problem, made.looked_up) == (None, 1)
        case Action.COORDINATOR:
            assert (problem, made.looked_up) == (None, 2)
            asked = Coordinators(None, found=(code,))
            assert named(code) in str(raised(coordinator_of(monkeypatch, asked).init()))
        case Action.DENIED:
            right = FIND_COORDINATOR.right(code, group="g", id="lane-0")
            assert (type(problem), str(problem)) == (NotAuthorized, f"FindCoordinator: grant {right}")
        case _:
            assert (type(problem), named(code) in str(problem)) == (meaning.error, True)


def test_lanes_that_follow_one_another_wait_once_for_coordinators_that_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    not_available = InitProducerIdResponse[4](error_code=15)
    made = Coordinators(*[not_available] * 500)
    first, second, third = (coordinator_of(monkeypatch, made) for _ in range(3))
    assert isinstance(raised(first.init()), ClusterUnreachable)
    waited, asked = made.now, made.asked
    assert isinstance(raised(second.init()), ClusterUnreachable)
    assert (made.now, made.asked) == (waited, asked + 1)
    made._given = [InitProducerIdResponse[4](error_code=51), InitProducerIdResponse[4](error_code=0)]
    assert raised(third.init()) is None, "this one has a coordinator, which ends a transaction first"
    assert made.asked == asked + 3


def test_a_producer_id_of_no_transaction_comes_from_any_broker_and_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class AnyBroker(Coordinators):
        async def send(self, request: Any, node: int | None = None, milliseconds: int | None = None) -> Any:  # noqa: ARG002 - as of a connection
            assert node is None
            return await super().send(request, 3)

    made = AnyBroker(InitProducerIdResponse[4](error_code=14), InitProducerIdResponse[4](error_code=0, producer_id=9, producer_epoch=0))
    assert asyncio.run(coordinator_of(monkeypatch, made).idempotent_identity()) == (9, 0)
    assert made.asked == 2


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("OFFSET_METADATA_TOO_LARGE", ConfigError, "offset.metadata.max.bytes"),
        ("INVALID_COMMIT_OFFSET_SIZE", ConfigError, "raise max.message.bytes (and segment.bytes) of that topic"),
        ("ILLEGAL_GENERATION", ReplicatorActive, "members"),
        ("UNKNOWN_MEMBER_ID", ReplicatorActive, "members"),
        ("UNKNOWN_SERVER_ERROR", OutcomeUnknown, "the coordinator's log says why"),
    ],
)
def test_refused_positions_name_class_and_remedy(monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception], told: str) -> None:
    problem = raised(commit(coordinator_of(monkeypatch, Coordinators(positioned(CODES[name])))))
    assert (type(problem), told in str(problem), f"{name} ({CODES[name]})" in str(problem)) == (error, True, True)
    assert isinstance(problem, FerryError) is (error is not OutcomeUnknown)


def test_the_most_serious_code_decides() -> None:
    request = error_policy.ADD_PARTITIONS_TO_TXN
    given = ([], [0, 0], [55, 3, 55], [0, 16, 51], [3, 29, 47], [51, 999])
    assert [request.gravest(codes) for codes in given] == [0, 0, 3, 16, 47, 999]


def test_whether_the_last_init_of_an_id_was_the_own_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time-out that it asked for."""
    told = DescribeTransactionsResponse.TransactionState(error_code=0, producer_id=7, producer_epoch=2, topics=[])
    brokers = Coordinators(DescribeTransactionsResponse[0](transaction_states=[told]))
    asked, another = coordinator_of(monkeypatch, brokers), coordinator_of(monkeypatch, brokers)
    another._milliseconds = asked._milliseconds - 1
    told.transaction_timeout_ms = asked._milliseconds
    assert asked._milliseconds >= coordination.TRANSACTION_MILLISECONDS - coordination.CHANCE_MILLISECONDS
    assert asked._milliseconds < coordination.TRANSACTION_MILLISECONDS
    assert (asyncio.run(asked.is_own()), asyncio.run(another.is_own())) == (True, False)
    told.error_code = CODES["TRANSACTIONAL_ID_NOT_FOUND"]
    assert not asyncio.run(asked.is_own()), "what is not told is not known"


@every_code_of(error_policy.DESCRIBE_TRANSACTIONS)
def test_who_holds_an_id(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    told = DescribeTransactionsResponse.TransactionState(error_code=code, producer_id=7, producer_epoch=2, topics=[])
    asked = coordinator_of(monkeypatch, Coordinators(DescribeTransactionsResponse[0](transaction_states=[told])))
    assert asyncio.run(asked.current()) == (None if code else ProducerIdentity(7, 2)), "what is not told is not known"
    assert asyncio.run(coordinator_of(monkeypatch, Coordinators(None, found=(15,))).current()) is None, "no coordinator yet"
