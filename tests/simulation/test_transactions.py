"""Transactions of a simulated cluster, in both protocols: epochs, fencing, markers as steps, time-outs, coordinators that move."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import (
    V1_END,
    V1_OFFSETS,
    V1_PRODUCE,
    V2_END,
    V2_OFFSETS,
    V2_PRODUCE,
    AddOffsets,
    AddPartitions,
    CommitInTransaction,
    End,
    Fetch,
    Init,
    Produce,
)
from tests.simulation.asks_of_admins import DescribeTransactions, FindCoordinators, ListTransactions, Offsets
from tests.simulation.codes import Code
from tests.simulation.steps import StepKind
from tests.simulation.transactions import LAST_EPOCH, Pair, State, Transactional

pytestmark = pytest.mark.unit


class Writer:
    """Writes in transactions by one of the protocols."""

    def __init__(self, bumps: bool) -> None:
        self.bumps, self.ask = bumps, Asker(transaction_version=2 if bumps else 1, brokers=(1, 2), state_replicas=2)
        cluster = self.ask.cluster
        for kind in (0, 1):
            cluster.state.coordinator(kind, "")
        for name in ("t", "u"):
            self.ask.memory.topic_ids[name] = cluster.create_topic(name, replicas=2).topic_id
        for topic in cluster.state.topics.values():
            for partition in topic.partitions:
                if partition.led.leader != 1:
                    cluster.elect(partition, 1)
        cluster.settle()

    def write(self, topic: str = "t", writer: str = "w", sequence: int = 0, epochs: int = 0) -> int:
        """The code."""
        if not self.bumps:
            answer = self.ask(AddPartitions("x", topic, writer=writer, epochs=epochs))
            code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code:
                return int(code)
        version = V2_PRODUCE if self.bumps else V1_PRODUCE
        produce = Produce(topic, writer=writer, id="x", sequence=sequence, epochs=epochs, version=version)
        return int(self.ask(produce).partitions[0].error_code)

    def commit_offset(self, offset: int) -> int:
        if not self.bumps:
            self.ask(AddOffsets("x", "g"))
        answer = self.ask(CommitInTransaction("x", "g", "t", offset=offset, version=V2_OFFSETS if self.bumps else V1_OFFSETS))
        return int(answer.topics[0].partitions[0].error_code)

    def end(self, commits: bool = True, **more: Any) -> int:
        return int(self.ask(End("x", commits=commits, version=V2_END if self.bumps else V1_END, **more)).error_code)

    def init(self, **more: Any) -> int:
        return int(self.ask(Init("x", **more)).error_code)

    def settle(self) -> None:
        self.ask.cluster.settle()

    def visible(self, topic: str = "t") -> int:
        return int(self.ask(Fetch(topic, committed=True)).responses[0].partitions[0].last_stable_offset)

    def offset(self) -> int:
        return int(self.ask(Offsets("g", "t")).groups[0].topics[0].partitions[0].committed_offset)


@pytest.fixture(params=[True, False], ids=["kip-890", "older protocol"])
def writer(request: pytest.FixtureRequest) -> Writer:
    return Writer(request.param)


def test_a_commit(writer: Writer) -> None:
    assert writer.init() == 0
    assert [writer.write("t"), writer.write("u"), writer.commit_offset(5)] == [0, 0, 0]
    assert (writer.visible("t"), writer.offset()) == (0, -1)
    assert writer.end() == 0
    assert writer.ask.memory.pair("w") == (0, 1 if writer.bumps else 0)
    # The answer comes before any marker; each marker is a step.
    marks = [step for step in writer.ask.cluster.steps if step.kind is StepKind.MARK]
    assert len(marks) == 3
    assert (writer.visible("t"), writer.visible("u"), writer.offset()) == (0, 0, -1)
    writer.ask.cluster.run(next(step for step in marks if " u-0" in step.about))
    assert (writer.visible("t"), writer.visible("u"), writer.offset()) == (0, 2, -1)
    # The id is taken until all are written; the last step cannot run before the others.
    [complete] = [step for step in writer.ask.cluster.steps if step.kind is StepKind.COMPLETE]
    assert not writer.ask.cluster.run(complete)
    assert writer.init(writer="other") == Code.CONCURRENT_TRANSACTIONS
    writer.settle()
    assert (writer.visible("t"), writer.visible("u"), writer.offset()) == (2, 2, 5)
    assert writer.init(writer="other") == 0


def test_an_abort(writer: Writer) -> None:
    writer.init()
    writer.write()
    writer.commit_offset(5)
    assert writer.end(commits=False) == 0
    writer.settle()
    assert writer.offset() == -1
    part = writer.ask(Fetch("t", committed=True)).responses[0].partitions[0]
    assert (part.last_stable_offset, [one.first_offset for one in part.aborted_transactions]) == (2, [0])


def test_end_again(writer: Writer) -> None:
    """With KIP-890 the pair before the end is recognised; before it the pair is the same."""
    again = {"epochs": -1} if writer.bumps else {}
    writer.init()
    writer.write()
    writer.end()
    assert writer.end(**again) == Code.CONCURRENT_TRANSACTIONS
    writer.settle()
    assert writer.end(**again) == 0
    assert writer.end(commits=False, **again) == Code.INVALID_TXN_STATE
    # Nothing is open.
    assert writer.end(commits=True, **({} if writer.bumps else {"epochs": 1})) in {Code.INVALID_TXN_STATE, Code.PRODUCER_FENCED}
    if writer.bumps:  # an abort of nothing raises the epoch
        before = writer.ask.memory.pair("w")
        assert writer.end(commits=False) == 0
        assert writer.ask.memory.pair("w") == (before[0], before[1] + 1)


def test_a_new_holder_fences_the_old_one(writer: Writer) -> None:
    writer.init()
    writer.write()
    # The first init aborts what is open, and must come again.
    assert writer.init(writer="new") == Code.CONCURRENT_TRANSACTIONS
    writer.settle()
    assert writer.init(writer="new") == 0
    assert writer.write(sequence=1) in {Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED}
    assert writer.end() == Code.PRODUCER_FENCED
    assert writer.init(writer="again", holding="w") == Code.PRODUCER_FENCED
    assert writer.write(writer="new") == 0
    assert writer.ask.memory.pair("new") == (0, 2)


def test_an_init_with_the_pair(writer: Writer) -> None:
    writer.init()
    assert writer.init(writer="next", holding="w") == 0
    assert writer.ask.memory.pair("next") == (0, 1)
    # Its answer was lost: the same request again gives the same pair.
    assert writer.init(writer="next", holding="w") == 0
    assert writer.ask.memory.pair("next") == (0, 1)
    assert writer.init(writer="after", holding="next") == 0
    assert writer.init(writer="late", holding="w") == Code.PRODUCER_FENCED


def test_an_init_with_the_pair_of_an_open_transaction(writer: Writer) -> None:
    """It aborts the transaction. Since KIP-890 the holder may go on; before it, it has fenced itself."""
    writer.init()
    writer.write()
    assert writer.init(holding="w") == Code.CONCURRENT_TRANSACTIONS
    writer.settle()
    assert writer.init(holding="w") == (0 if writer.bumps else Code.PRODUCER_FENCED)


def test_kafka_4_0_fences_the_holder_whose_transaction_it_aborts() -> None:
    ask = Asker(release=(4, 0))
    ask.memory.topic_ids["t"] = ask.cluster.create_topic("t").topic_id
    ask.cluster.state.coordinator(1, "")
    ask(Init("x"))
    assert ask(Produce("t", writer="w", id="x")).partitions[0].error_code == 0
    assert ask(Init("x", holding="w")).error_code == Code.CONCURRENT_TRANSACTIONS
    ask.cluster.settle()
    assert ask(Init("x", holding="w")).error_code == Code.PRODUCER_FENCED
    ask(Init("x", writer="new"))
    assert ask.memory.pair("new") == (0, 3)


def test_a_refused_init_aborts_too(writer: Writer) -> None:
    writer.init()
    writer.init(writer="new")
    writer.write(writer="new")
    assert writer.init(writer="other", holding="w") == Code.CONCURRENT_TRANSACTIONS
    writer.settle()
    assert writer.init(writer="other", holding="w") == Code.PRODUCER_FENCED
    assert writer.end(writer="new") == (Code.INVALID_TXN_STATE if writer.bumps else Code.PRODUCER_FENCED)


def test_a_time_out(writer: Writer) -> None:
    writer.init(timeout=5_000)
    writer.write()
    writer.ask.cluster.advance(writer.ask.cluster.now + 9_999)
    assert not len(writer.ask.cluster.steps)
    writer.ask.cluster.advance(writer.ask.cluster.now + 1)
    assert [step.kind for step in writer.ask.cluster.steps] == [StepKind.TIME_OUT]
    writer.settle()
    assert writer.visible() == 2
    assert writer.end() == (Code.INVALID_TXN_STATE if writer.bumps else Code.PRODUCER_FENCED)
    assert writer.write(sequence=1) in {Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH}
    assert writer.init(holding="w") == (0 if writer.bumps else Code.PRODUCER_FENCED)


def test_a_time_out_comes_too_late_for_a_transaction_that_was_ended(writer: Writer) -> None:
    writer.init(timeout=5_000)
    writer.write()
    writer.ask.cluster.advance(writer.ask.cluster.now + 10_000)
    assert writer.end() == 0
    writer.settle()
    assert writer.ask.cluster.transactions.ids["x"].state is State.COMPLETE_COMMIT


def test_a_coordinator_that_moves(writer: Writer) -> None:
    writer.init()
    writer.write("t")
    writer.write("u")
    writer.end()
    cluster = writer.ask.cluster
    cluster.run(next(iter(cluster.steps)))
    place = cluster.state.state_partition(1, "x")
    assert place is not None
    cluster.elect(place, 2)
    assert writer.init(writer="new") == Code.NOT_COORDINATOR
    assert writer.ask(Init("x"), 2).error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
    [found] = writer.ask(FindCoordinators(("x",), 1)).coordinators
    assert found.node_id == 2
    writer.settle()
    assert cluster.transactions.ids["x"].state is State.COMPLETE_COMMIT
    assert writer.visible("u") >= 2
    # It does not know the epoch before any more; the commit itself is recognised all the same.
    end = End("x", epochs=-1 if writer.bumps else 0, version=V2_END if writer.bumps else V1_END)
    assert writer.ask(end, 2).error_code == 0
    if writer.bumps:
        assert writer.ask(Init("x", writer="old", holding="w", epochs=-1), 2).error_code == Code.PRODUCER_FENCED


def test_a_marker_waits_for_a_leader(writer: Writer) -> None:
    writer.init()
    writer.write()
    writer.end()
    cluster, partition = writer.ask.cluster, writer.ask.cluster.topic("t").partitions[0]
    cluster.elect(partition, -1)
    writer.settle()
    assert {step.kind for step in cluster.steps} == {StepKind.MARK, StepKind.COMPLETE}
    cluster.elect(partition, 1)
    writer.settle()
    assert not len(cluster.steps)
    assert writer.visible() == 2


def test_a_marker_goes_into_a_topic_that_was_made_anew(writer: Writer) -> None:
    writer.init()
    writer.write()
    cluster = writer.ask.cluster
    cluster.administration.delete(cluster.topic("t"))
    cluster.create_topic("t")
    assert writer.end() == 0
    writer.settle()
    assert (cluster.topic("t").partitions[0].log.end, len(cluster.steps)) == (1, 0)


def test_requests_that_name_nobody(writer: Writer) -> None:
    assert writer.ask(Init("")).error_code in {Code.INVALID_REQUEST, Code.NOT_COORDINATOR}
    assert writer.init(timeout=900_001) == Code.INVALID_TRANSACTION_TIMEOUT
    assert writer.end() == Code.INVALID_PRODUCER_ID_MAPPING
    writer.init()
    answer = writer.ask(AddPartitions("x", "t", beside=("missing",)))
    codes = [part.partition_error_code for topic in answer.results_by_topic_v3_and_below for part in topic.results_by_partition]
    assert codes == [Code.OPERATION_NOT_ATTEMPTED, Code.UNKNOWN_TOPIC_OR_PARTITION]


def test_what_a_coordinator_shows(writer: Writer) -> None:
    writer.init()
    writer.write()
    [told] = writer.ask(DescribeTransactions("x")).transaction_states
    assert (told.transaction_state, told.producer_id, told.topics[0].topic, told.topics[0].partitions) == ("Ongoing", 0, "t", [0])
    assert writer.ask(DescribeTransactions("y")).transaction_states[0].error_code == Code.TRANSACTIONAL_ID_NOT_FOUND
    assert [one.transactional_id for one in writer.ask(ListTransactions(("w",))).transaction_states] == ["x"]
    assert writer.ask(ListTransactions(("nobody",))).transaction_states == []


def test_epochs_that_are_used_up() -> None:
    """Then the id gets another producer id: with KIP-890 after the markers, before it at an init."""
    ids = iter((7, 8))
    bumping = Transactional("x", Pair(1, LAST_EPOCH), 60_000, State.ONGOING)
    decision = bumping.end(Pair(1, LAST_EPOCH), 0, lambda: next(ids), commits=True, bumps=True)
    assert (decision.pair, bumping.pair) == (Pair(7, 0), Pair(1, LAST_EPOCH + 1))
    bumping.complete()
    assert bumping.pair == Pair(7, 0)
    assert bumping.end(Pair(1, LAST_EPOCH), 0, lambda: next(ids), commits=True, bumps=True).pair == Pair(7, 0)
    older = Transactional("x", Pair(1, LAST_EPOCH), 60_000, State.COMPLETE_COMMIT)
    assert older.init(60_000, Pair(1, LAST_EPOCH), lambda: next(ids), bumps=False).pair == Pair(8, 0)
    assert older.init(60_000, Pair(1, 3), lambda: next(ids), bumps=False).code is Code.PRODUCER_FENCED
