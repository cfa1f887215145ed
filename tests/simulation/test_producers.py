"""Produce to a simulated cluster: sequence numbers, epochs, what is refused, and the check of transactions."""

from __future__ import annotations

import pytest
from kafka.protocol.producer import ProduceResponse
from tests.simulation.asker import Asker
from tests.simulation.asks import V1_PRODUCE, AddPartitions, End, Fetch, Init, Produce, Producers
from tests.simulation.codes import Code
from tests.simulation.steps import StepKind

from ferry.clusters.logs.producing import BatchesAnswer, decode_answer

pytestmark = pytest.mark.unit


@pytest.fixture
def ask() -> Asker:
    asker = Asker()
    asker.memory.topic_ids["t"] = asker.cluster.create_topic("t", min_insync_replicas="1").topic_id
    asker.cluster.state.coordinator(1, "x")
    return asker


def _told(answer: BatchesAnswer) -> tuple[int, int]:
    [part] = answer.partitions
    return part.error_code, part.base_offset


def test_the_answer_is_what_ferry_decodes_from_kafkas(ask: Asker) -> None:
    answer = ask(Produce("t"))
    [part] = answer.partitions
    response = ProduceResponse.TopicProduceResponse
    inner = response.PartitionProduceResponse(version=13, index=part.partition, error_code=0, base_offset=0, log_start_offset=0)
    sent = ProduceResponse(version=13, responses=[response(version=13, topic_id=part.topic, partition_responses=[inner])])
    assert decode_answer(memoryview(sent.encode(version=13)), 13) == answer


def test_sequence_numbers(ask: Asker) -> None:
    ask(Init(None))
    assert _told(ask(Produce("t", writer="w", values=(b"a", b"b")))) == (0, 0)
    # The same batch again is answered with its place; a gap is refused.
    assert _told(ask(Produce("t", writer="w", values=(b"a", b"b")))) == (0, 0)
    assert _told(ask(Produce("t", writer="w", sequence=3))) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    for sequence in range(2, 8):
        assert _told(ask(Produce("t", writer="w", sequence=sequence))) == (0, sequence)
    # The leader remembers five batches.
    assert _told(ask(Produce("t", writer="w", sequence=3))) == (0, 3)
    assert _told(ask(Produce("t", writer="w", sequence=2))) == (Code.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    # A later epoch begins at 0, an earlier one is refused; whoever is not known may begin anywhere.
    assert _told(ask(Produce("t", writer="w", sequence=8, epochs=1)))[0] == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert _told(ask(Produce("t", writer="w", sequence=0, epochs=1))) == (0, 8)
    assert _told(ask(Produce("t", writer="w", sequence=8)))[0] == Code.INVALID_PRODUCER_EPOCH
    ask(Init(None, writer="other"))
    assert _told(ask(Produce("t", writer="other", sequence=100))) == (0, 9)


def test_what_is_refused(ask: Asker) -> None:
    ask.cluster.topic("t").set_config({"max.message.bytes": "100", "cleanup.policy": "compact"})
    assert _told(ask(Produce("t", values=(b"x" * 100,))))[0] == Code.MESSAGE_TOO_LARGE
    assert _told(ask(Produce("t", damaged=True)))[0] == Code.CORRUPT_MESSAGE
    assert _told(ask(Produce("t", ages=(-3_600_001,))))[0] == Code.INVALID_TIMESTAMP
    [part] = ask(Produce("t", keys=(None,))).partitions
    assert part.error_code == Code.INVALID_RECORD
    assert "without key" in part.message
    assert _told(ask(Produce("t", partition=1)))[0] == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert _told(ask(Produce("none", topic_id=ask.memory.topic_ids["t"].__class__(int=1))))[0] == Code.UNKNOWN_TOPIC_ID
    ask.cluster.topic("t").set_config({"min.insync.replicas": "2"})
    assert _told(ask(Produce("t")))[0] == Code.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("version", [11, 13])
def test_a_record_without_a_transaction(ask: Asker, version: int) -> None:
    """Before KIP-890 the partition must be in the transaction; since then the broker adds it."""
    ask(Init("x"))
    produce = Produce("t", writer="w", id="x", version=version)
    assert _told(ask(produce)) == ((0, 0) if version == 13 else (Code.TRANSACTION_ABORTABLE, -1))
    ask(AddPartitions("x", "t"))
    assert _told(ask(produce)) == (0, 0)
    # Without the transactional bit no record of this producer may come now.
    assert _told(ask(Produce("t", writer="w", sequence=1, version=version)))[0] == Code.INVALID_TXN_STATE
    stale = Produce("t", writer="w", id="x", sequence=1, epochs=-1, version=version)
    assert _told(ask(stale))[0] == Code.INVALID_PRODUCER_EPOCH
    unknown = Produce("t", writer="w", id="y", epochs=1, version=version)
    assert _told(ask(unknown))[0] in {Code.INVALID_PRODUCER_ID_MAPPING, Code.INVALID_PRODUCER_EPOCH}


def test_an_older_version_gets_an_older_code(ask: Asker) -> None:
    ask(Init("x"))
    assert _told(ask(Produce("t", writer="w", id="x", version=10)))[0] == Code.INVALID_TXN_STATE


def test_a_later_batch_waits_for_the_first_of_its_transaction(ask: Asker) -> None:
    ask(Init("x"))
    assert _told(ask(Produce("t", writer="w", id="x", sequence=1)))[0] == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert _told(ask(Produce("t", writer="w", id="x", sequence=0))) == (0, 0)
    assert _told(ask(Produce("t", writer="w", id="x", sequence=1))) == (0, 1)


def test_a_producer_while_its_markers_are_written(ask: Asker) -> None:
    ask(Init("x"))
    ask(Produce("t", writer="w", id="x"))
    ask(End("x"))
    # The next transaction of the same producer cannot begin yet: the broker waits for a moment.
    late, soon = ask.begin(Produce("t", writer="w", id="x")), ask.begin(Produce("t", writer="w", id="x", version=V1_PRODUCE))
    assert not late.ended
    assert _told(soon.answer)[0] == Code.NOT_ENOUGH_REPLICAS
    ask.cluster.advance(ask.cluster.now + 100)
    ask.cluster.run(next(step for step in ask.cluster.steps if step.kind is StepKind.ANSWER))
    assert _told(late.answer)[0] == Code.CONCURRENT_TRANSACTIONS
    again = ask.begin(Produce("t", writer="w", id="x"))
    ask.cluster.settle()
    assert _told(again.answer) == (0, 2)


def test_producers_that_a_leader_describes(ask: Asker) -> None:
    ask(Init("x"))
    ask(Produce("t", writer="w", id="x", values=(b"a", b"b")))
    [part] = ask(Producers("t")).topics[0].partitions
    [told] = part.active_producers
    assert (told.producer_id, told.producer_epoch, told.last_sequence, told.current_txn_start_offset) == (0, 0, 1, 0)
    ask(End("x"))
    ask.cluster.settle()
    [told] = ask(Producers("t")).topics[0].partitions[0].active_producers
    assert (told.producer_epoch, told.last_sequence, told.current_txn_start_offset) == (1, -1, -1)


def test_aborted_transactions_in_a_fetch(ask: Asker) -> None:
    ask(Init("x"))
    for commits in (True, False, False):
        ask(Produce("t", writer="w", id="x"))
        ask(End("x", commits=commits))
        ask.cluster.settle()
    ask(Produce("t", writer="w", id="x"))
    part = ask(Fetch("t", committed=True)).responses[0].partitions[0]
    assert (part.last_stable_offset, part.high_watermark) == (6, 7)
    assert [(one.producer_id, one.first_offset) for one in part.aborted_transactions] == [(0, 2), (0, 4)]
    part = ask(Fetch("t", offset=4, committed=True)).responses[0].partitions[0]
    assert [one.first_offset for one in part.aborted_transactions] == [4]
    assert ask(Fetch("t")).responses[0].partitions[0].aborted_transactions is None
