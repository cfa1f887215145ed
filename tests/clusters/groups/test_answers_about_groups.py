"""Groups, open transactions, the quorum, logs, ACLs and librdkafka's requests: what is done for every code is what the tables say."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Self

import pytest
from confluent_kafka import KafkaError
from kafka.future import Future
from kafka.protocol.admin import (
    DescribeAclsResponse,
    DescribeGroupsResponse,
    DescribeLogDirsResponse,
    DescribeQuorumResponse,
    ListGroupsResponse,
)
from kafka.protocol.admin.transactions import DescribeProducersResponse, DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.consumer.group import OffsetCommitResponse
from tests.clusters.logs.test_answers_to_writes import Coordinators, looked, of_partition
from tests.clusters.net.test_error_policy import every_code_of

from ferry.clusters.admin import acls, api_versions
from ferry.clusters.groups import consumer_groups, group_requests
from ferry.clusters.groups.consumer_groups import ConsumerGroups
from ferry.clusters.groups.group_model import CommittedOffset, GroupDescription, GroupListing, GroupState, GroupType
from ferry.clusters.groups.messages import ConsumerGroupDescribeResponse
from ferry.clusters.logs import open_transactions
from ferry.clusters.net import error_policy
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.error_codes import CODES, named
from ferry.clusters.net.error_policy import Action, RequestKind
from ferry.clusters.net.event_loop import EventLoop
from ferry.clusters.net.failures import explained, refusal
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Cluster
from ferry.copying.partition_weights import log_sizes
from ferry.errors import ClusterUnreachable, FerryError, GroupFailed, NotAuthorized, RetryRule
from ferry.syncs.group_placing import has_members

pytestmark = pytest.mark.unit

KEY = TopicPartition("A.t", 0)
ABSENT = GroupDescription("g", GroupState.DEAD, "")
CLUSTER: Any = SimpleNamespace(alias="B", where="cluster B (b:1)", principal="User:ferry")


class Broker(Coordinators):
    """One broker and the loop, as groups ask them."""

    @property
    def loop(self) -> Self:
        return self

    async def send(self, request: Any, node: int | None = None, *_: int, **__: int) -> Any:
        self.now += 0.05
        return await super().send(request, node)

    submit = send

    def run(self, ask: Any, *arguments: Any) -> Any:
        async def asked() -> Any:  # futures belong to a running loop
            return await ask(*arguments)

        return asyncio.run(asked())

    def start(self, ask: Any, *arguments: Any) -> Any:
        return asyncio.ensure_future(ask(*arguments))

    async def refresh_brokers(self) -> None:
        return None

    def brokers(self) -> tuple[int, ...]:
        return (3,)

    def granting(self, right: str) -> str:
        return f"grant {right}"


def asked(ask: Any = None) -> Any:
    return SimpleNamespace(alias=CLUSTER.alias, cluster=CLUSTER, ask=ask)


def groups_of(monkeypatch: pytest.MonkeyPatch, *given: Any, found: tuple[int, ...] = (0,)) -> tuple[ConsumerGroups, Broker]:
    groups, broker = ConsumerGroups(asked()), Broker(*given, found=found)
    groups._client, groups._connections = broker, [broker]  # type: ignore[assignment, list-item]
    for module in (group_requests, consumer_groups):
        monkeypatch.setattr(module, "clock", broker)
    return groups, broker


def judged(request: RequestKind, code: int, outcome: Any, lasting: Any, broker: Broker) -> None:
    """Holds the outcome of one group against the table: `outcome` where the second answer is a good one, `lasting` where it never is."""
    match request.action(code):
        case Action.GO_ON | Action.NOTHING:
            assert (isinstance(outcome, FerryError), broker.asked) == (False, 1)
        case Action.AGAIN | Action.COORDINATOR as action:
            assert (isinstance(outcome, FerryError), broker.asked) == (False, 2)
            assert broker.looked_up == (2 if action is Action.COORDINATOR else 1)
            assert (type(lasting), named(code) in str(lasting)) == (GroupFailed, True)
        case Action.DENIED:
            assert (type(outcome), request.right(code, group="g", topic="A.t") in str(outcome)) == (NotAuthorized, True)
        case Action.UNKNOWN:
            assert (type(outcome), f"it is not known whether that was done: {named(code)}" in str(outcome)) == (GroupFailed, True)
        case Action.REFUSED:
            assert (type(outcome), named(code) in str(outcome), broker.asked) == (GroupFailed, True, 1)


@every_code_of(error_policy.OFFSET_FETCH)
@pytest.mark.parametrize("answer", [looked, of_partition])
def test_offsets(monkeypatch: pytest.MonkeyPatch, answer: Any, code: int) -> None:
    groups, broker = groups_of(monkeypatch, answer(code), answer(0))
    lasting, _ = groups_of(monkeypatch, answer(code))
    outcome = groups.offsets(["g"])["g"]
    judged(error_policy.OFFSET_FETCH, code, outcome, lasting.offsets(["g"])["g"], broker)
    if not isinstance(outcome, FerryError):
        assert outcome == ({} if error_policy.OFFSET_FETCH.action(code) is Action.NOTHING else {KEY: CommittedOffset(5, -1, "")})


def committed(code: int, beside: int = 0) -> Any:
    topic = OffsetCommitResponse.OffsetCommitResponseTopic
    parts = [topic.OffsetCommitResponsePartition(partition_index=at, error_code=found) for at, found in ((0, code), (1, beside))]
    return OffsetCommitResponse[8](topics=[topic(name="A.t", partitions=parts)])


@every_code_of(error_policy.OFFSET_COMMIT)
def test_writing_offsets(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """What is about the group is about all partitions, also where the broker refused one by itself; the rest is told by partition."""
    action, told, _ = error_policy.OFFSET_COMMIT.meaning(code)
    wanted = {"g": {KEY: CommittedOffset(5), TopicPartition("A.t", 1): CommittedOffset(6)}}
    groups, broker = groups_of(monkeypatch, committed(code, 29), committed(0, 29))
    outcome = groups.commit_all(wanted)["g"]
    if action in {Action.UNKNOWN, Action.COORDINATOR} or "{group}" in told:
        lasting, _ = groups_of(monkeypatch, committed(code))
        judged(error_policy.OFFSET_COMMIT, code, outcome, lasting.commit_all(wanted)["g"], broker)
    else:
        assert (outcome, broker.asked) == ({**({KEY: code} if code else {}), ("A.t", 1): 29}, 1)
    assert has_members({KEY: code}) == (
        CODES["UNKNOWN_MEMBER_ID"] in error_policy.OFFSET_COMMIT.meanings and told == "the group has members"
    )


def classic(code: int) -> Any:
    group = DescribeGroupsResponse.DescribedGroup(group_id="g", error_code=code, group_state="" if code else "Stable", members=[])
    return DescribeGroupsResponse[5](groups=[group])


def newer(code: int) -> Any:
    group = ConsumerGroupDescribeResponse.DescribedGroup(group_id="g", error_code=code, group_state="" if code else "Stable", members=[])
    return ConsumerGroupDescribeResponse[0](groups=[group])


@every_code_of(error_policy.DESCRIBE_GROUPS, error_policy.CONSUMER_GROUP_DESCRIBE)
def test_describing_groups(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(ConsumerGroups, "list", lambda _: ())  # no streams groups
    gone = error_policy.DESCRIBE_GROUPS.action(code) is Action.NOTHING
    groups, broker = groups_of(monkeypatch, classic(code), *([newer(69)] if gone else []), classic(0))
    outcome = groups.describe(["g"])["g"]
    broker.asked -= gone
    lasting, _ = groups_of(monkeypatch, classic(code), *([newer(69)] if gone else []))
    judged(error_policy.DESCRIBE_GROUPS, code, outcome, lasting.describe(["g"])["g"], broker)
    groups, broker = groups_of(monkeypatch, classic(69), newer(code), newer(0))
    outcome = groups.describe(["g"])["g"]
    broker.asked -= 1
    lasting, _ = groups_of(monkeypatch, classic(69), newer(code))
    judged(error_policy.CONSUMER_GROUP_DESCRIBE, code, outcome, lasting.describe(["g"])["g"], broker)
    assert (outcome == ABSENT) == (error_policy.CONSUMER_GROUP_DESCRIBE.action(code) is Action.NOTHING)


def test_the_listing_has_the_state_of_a_streams_group(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, _ = groups_of(monkeypatch, classic(69), newer(69))
    entries = GroupListing("g", GroupType.STREAMS, "streams", "Stable"), GroupListing("other", GroupType.STREAMS, "streams", "Stable")
    monkeypatch.setattr(ConsumerGroups, "list", lambda _: entries)
    assert groups.describe(["g"]) == {"g": GroupDescription("g", "Stable", GroupType.STREAMS)}


@every_code_of(error_policy.FIND_COORDINATOR)
def test_coordinators_of_groups(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    groups, broker = groups_of(monkeypatch, looked(0), found=(code, 0))
    outcome = groups.offsets(["g"])["g"]
    match error_policy.FIND_COORDINATOR.action(code):
        case Action.GO_ON | Action.COORDINATOR:
            assert (isinstance(outcome, FerryError), broker.looked_up) == (False, 2 if code else 1)
        case Action.DENIED if code == CODES["GROUP_AUTHORIZATION_FAILED"]:
            assert "grant Describe on group g" in str(outcome), "what the question itself needs"
        case Action.REFUSED:
            assert (type(outcome), named(code) in str(outcome)) == (GroupFailed, True)


@every_code_of(error_policy.LIST_GROUPS)
def test_listing_groups(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    groups, broker = groups_of(monkeypatch, ListGroupsResponse[4](error_code=code), ListGroupsResponse[4](error_code=0))
    assert (groups.list(), broker.asked) == ((), 1 if code == 0 else 2)
    if code:
        lasting, _ = groups_of(monkeypatch, ListGroupsResponse[4](error_code=code))
        with pytest.raises(ClusterUnreachable) as raised:
            lasting.list()
        assert named(code) in str(raised.value)


@every_code_of(error_policy.DESCRIBE_PRODUCERS, error_policy.LIST_TRANSACTIONS, error_policy.DESCRIBE_TRANSACTIONS)
def test_open_transactions(code: int) -> None:
    topic = DescribeProducersResponse.TopicResponse
    state = topic.PartitionResponse.ProducerState(producer_id=7, producer_epoch=1, last_timestamp=5, current_txn_start_offset=40)
    part = topic.PartitionResponse(partition_index=0, error_code=code, error_message=None, active_producers=[] if code else [state])
    broker: Any = Broker(DescribeProducersResponse[0](topics=[topic(name="A.t", partitions=[part])]))
    leaders: Any = SimpleNamespace(by_node=lambda keys: {3: keys})
    shown = asyncio.run(open_transactions._of_leaders(broker, leaders, [KEY])).get(KEY)
    action = error_policy.DESCRIBE_PRODUCERS.action(code)
    assert (isinstance(shown, tuple), shown is None) == (code == 0, action is Action.LEADER), "left out: it is asked again"
    if isinstance(shown, str):
        assert ("grant Read on topic A.t" in shown, named(code) in shown) == (action is Action.DENIED, action is not Action.DENIED)
    listed, described = ListTransactionsResponse.TransactionState, DescribeTransactionsResponse.TransactionState
    names = [listed(transactional_id="x", producer_id=7, transaction_state="Ongoing")]
    for at in range(2):
        codes = [code if at == place else 0 for place in range(2)]
        broker = Broker(
            ListTransactionsResponse[0](error_code=codes[0], transaction_states=names),
            DescribeTransactionsResponse[0](transaction_states=[described(producer_id=7, error_code=codes[1], topics=[])]),
        )
        assert (7 in asyncio.run(open_transactions._coordinated(broker, [7]))) == (code == 0), "what is not told is not known"


@every_code_of(error_policy.DESCRIBE_QUORUM)
@pytest.mark.parametrize("whole", [True, False])
def test_clock(code: int, whole: bool) -> None:
    topic = DescribeQuorumResponse.TopicData
    voter = topic.PartitionData.ReplicaState(replica_id=1, last_caught_up_timestamp=5_000)
    part = topic.PartitionData(partition_index=0, error_code=0 if whole else code, leader_id=1, current_voters=[voter])
    told = api_versions._clock(DescribeQuorumResponse[1](error_code=code if whole else 0, topics=[topic(partitions=[part])]), 4_000, 4_002)
    if code == 0:
        assert told == api_versions.Clock(999, 2)
    else:
        denied = error_policy.DESCRIBE_QUORUM.action(code) is Action.DENIED
        assert told == ("it tells only users with Describe on the cluster" if denied else f"it answers {named(code)}")


@every_code_of(error_policy.DESCRIBE_LOG_DIRS)
def test_log_sizes(code: int) -> None:
    """What one directory cannot tell does not take away what another tells."""
    directory = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = directory.DescribeLogDirsTopic

    def held(number: int, code: int) -> Any:
        part = topic.DescribeLogDirsPartition(partition_index=number, partition_size=7, offset_lag=0, is_future_key=False)
        return directory(error_code=code, log_dir=f"/{number}", topics=[topic(name="A.t", partitions=[part])])

    async def answer(*_: object) -> Any:
        return DescribeLogDirsResponse[1](results=[held(0, code), held(1, 0)])

    async def known(_: object) -> None:
        """It knows them."""

    loop = EventLoop()
    leaders = SimpleNamespace(known=known, by_node=lambda keys: {3: keys})
    connection: Any = SimpleNamespace(loop=loop, leaders=leaders, submit=lambda *_: loop.start(answer), answer_to=passed_on)
    told = loop.run(log_sizes, connection, [KEY, TopicPartition("A.t", 1)])
    loop.close()
    assert told == {**({KEY: 7} if error_policy.DESCRIBE_LOG_DIRS.action(code) is Action.GO_ON else {}), ("A.t", 1): 7}


async def passed_on(future: Future) -> Any:
    return await future


def test_a_service_that_does_not_offer_to_describe_acls_has_none() -> None:
    assert acls.read_acls(asked(lambda *_: {0: 11})) is None


@every_code_of(error_policy.DESCRIBE_ACLS)
def test_acls(code: int) -> None:
    broker = Broker(DescribeAclsResponse[1](error_code=code, error_message=None, resources=[]))

    def ask(question: Any, *_: Any) -> Any:
        return {DescribeAclsResponse.API_KEY: 1} if question is ClusterConnection.newest else broker.run(broker.send, None, 3)

    cluster = asked(ask)
    match error_policy.DESCRIBE_ACLS.action(code):
        case Action.GO_ON:
            assert acls.read_acls(cluster) == frozenset()
        case Action.NOTHING:
            assert acls.read_acls(cluster) is None
        case Action.DENIED:
            with pytest.raises(NotAuthorized, match="grant Alter on the cluster"):
                acls.read_acls(cluster, to_alter=True)
            with pytest.raises(NotAuthorized, match="grant Describe on the cluster"):
                acls.read_acls(cluster)
        case _:
            with pytest.raises(ClusterUnreachable) as raised:
                acls.read_acls(cluster)
            assert named(code) in str(raised.value)


@every_code_of(error_policy.ADMIN)
def test_requests_over_librdkafka(code: int) -> None:
    """What may pass is ClusterUnreachable, which runs try again; a change that would be refused again is not."""
    cluster: Cluster = CLUSTER
    problem = refusal(cluster, "creating topic t", KafkaError(code), grant="Create on topic t")
    kinds = {Action.DENIED: NotAuthorized, Action.REFUSED: error_policy.ADMIN.meaning(code).error}
    action = error_policy.ADMIN.action(code)
    assert type(problem) is kinds.get(action, ClusterUnreachable)
    assert action in kinds or problem.retry is RetryRule.RETRY
    read = explained(cluster, "describing topic t", KafkaError(code), grant="Describe on topic t")
    assert type(read) is (NotAuthorized if action is Action.DENIED else ClusterUnreachable)
