"""Logs of a simulated cluster: what Fetch, ListOffsets and OffsetForLeaderEpoch answer, truncation, retention, compaction."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import DeleteRecords, EpochEnd, Fetch, Init, ListOffsets, Memory, Produce, batch
from tests.simulation.batches import HEADER, is_intact, marker, placed, records, sent
from tests.simulation.cleaning import compact
from tests.simulation.codes import Code
from tests.simulation.epochs import Epochs

pytestmark = pytest.mark.unit


@pytest.fixture
def ask() -> Asker:
    asker = Asker()
    asker.memory.topic_ids["t"] = asker.cluster.create_topic("t").topic_id
    return asker


def _part(answer: Any) -> Any:
    return answer.responses[0].partitions[0]


def _listed(answer: Any) -> tuple[int, int]:
    part = answer.topics[0].partitions[0]
    assert part.error_code == 0
    return part.offset, part.leader_epoch


def test_a_batch_keeps_its_bytes_but_for_offset_and_epoch(ask: Asker) -> None:
    data = batch(ask.memory, (-1, -1), -1, [b"a", b"b"], transactional=False)
    at = placed(data, 7, 3)
    assert (at.base_offset, at.next_offset, at.leader_epoch) == (7, 9, 3)
    assert at.data[16:] == data[16:]
    assert is_intact(at.data, sent(at.data))
    assert [(one.offset, one.value) for one in records(at)] == [(7, b"a"), (8, b"b")]


def test_the_broker_writes_its_time_where_the_topic_says_so(ask: Asker) -> None:
    data = batch(ask.memory, (-1, -1), -1, [b"a"], transactional=False)
    at = placed(data, 0, 0, appended=123)
    assert is_intact(at.data, sent(at.data))
    assert [one.timestamp for one in records(at)] == [123]


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_says_how_the_transaction_ends(commits: bool) -> None:
    at = placed(marker(5, 2, 9, 1_000, commits=commits), 4, 1)
    assert is_intact(at.data, sent(at.data))
    assert (at.commits, at.coordinator_epoch, at.is_control, at.next_offset) == (commits, 9, True, 5)
    assert [(one.key, one.value) for one in records(at)] == [(bytes([0, 0, 0, commits]), b"\0\0\0\0\0\x09")]


def test_a_fetch_gives_whole_batches_and_cuts_off_the_last(ask: Asker) -> None:
    for value in (b"one", b"two", b"three"):
        ask(Produce("t", values=(value,)))
    whole = _part(ask(Fetch("t"))).records
    size = len(ask.cluster.topic("t").partitions[0].log.batches[0].data)
    assert _part(ask(Fetch("t", limit=size + 5))).records == whole[: size + 5]
    # The first batch comes whole, however small the limit is; the batch that holds the offset comes from its beginning.
    assert _part(ask(Fetch("t", limit=1))).records == whole[:size]
    assert _part(ask(Fetch("t", limit=1, total=1))).records == whole[:size]
    assert _part(ask(Fetch("t", offset=1))).records == whole[size:]
    assert _part(ask(Fetch("t", offset=3))).records == b""
    part = _part(ask(Fetch("t", offset=4)))
    assert (part.error_code, part.high_watermark) == (Code.OFFSET_OUT_OF_RANGE, -1)


def test_old_versions_name_topics(ask: Asker) -> None:
    ask(Produce("t", version=11))
    answer = ask(Fetch("t", version=11))
    assert answer.responses[0].topic == "t"
    assert _part(answer).records


def test_offsets_of_times(ask: Asker) -> None:
    ask(Produce("t", values=(b"a", b"b"), ages=(3_000, 1_000)))
    ask(Produce("t", values=(b"c",), ages=(2_000,)))
    times = {age: ask(ListOffsets("t", age=age)).topics[0].partitions[0].offset for age in (4_000, 2_500, 1_000, 999)}
    assert times == {4_000: 0, 2_500: 1, 1_000: 1, 999: -1}
    assert _listed(ask(ListOffsets("t", at=-3)))[0] == 1
    assert _listed(ask(ListOffsets("t", at=-1))) == (3, 0)
    assert _listed(ask(ListOffsets("t", at=-2))) == (0, 0)


def test_deleted_records(ask: Asker) -> None:
    for _ in range(3):
        ask(Produce("t", values=(b"a", b"b")))
    part = ask(DeleteRecords("t", offset=3)).topics[0].partitions[0]
    assert (part.error_code, part.low_watermark) == (0, 3)
    assert _part(ask(Fetch("t", offset=2))).error_code == Code.OFFSET_OUT_OF_RANGE
    # The batch that holds the new start stays whole.
    assert HEADER.unpack_from(_part(ask(Fetch("t", offset=3))).records)[0] == 2
    assert ask(DeleteRecords("t", offset=7)).topics[0].partitions[0].error_code == Code.OFFSET_OUT_OF_RANGE
    assert ask(DeleteRecords("t")).topics[0].partitions[0].low_watermark == 6


def test_epochs() -> None:
    epochs = Epochs()
    assert epochs.end_of(0, 0) == (-1, -1)
    for epoch, offset in ((1, 0), (3, 10), (4, 10), (6, 20)):
        epochs.assign(epoch, offset)
    assert list(epochs) == [(1, 0), (4, 10), (6, 20)]
    assert [epochs.end_of(epoch, 30) for epoch in (0, 1, 2, 3, 4, 5, 6, 7)] == [
        (0, 0),
        (1, 10),
        (1, 10),
        (1, 10),
        (4, 20),
        (4, 20),
        (6, 30),
        (-1, -1),
    ]
    epochs.truncate_to(15)
    assert list(epochs) == [(4, 15), (6, 20)]
    epochs.truncate_from(20)
    assert list(epochs) == [(4, 15)]


def test_the_end_of_an_epoch_over_the_wire(ask: Asker) -> None:
    ask(Produce("t"))
    partition = ask.cluster.topic("t").partitions[0]
    ask.cluster.elect(partition, 1)
    ask(Produce("t"))

    def told(asked: int, epoch: int = -1) -> tuple[int, int, int]:
        part = ask(EpochEnd("t", asked=asked, epoch=epoch)).topics[0].partitions[0]
        return part.error_code, part.leader_epoch, part.end_offset

    assert told(0) == (0, 0, 1)
    assert told(1) == (0, 1, 2)
    assert told(2) == (0, -1, -1)
    assert told(0, epoch=0) == (Code.FENCED_LEADER_EPOCH, -1, -1)
    assert told(0, epoch=2) == (Code.UNKNOWN_LEADER_EPOCH, -1, -1)
    # A fetch says the same of what the reader has read.
    assert _part(ask(Fetch("t", offset=1, last_epoch=0))).diverging_epoch is None
    diverging = _part(ask(Fetch("t", offset=2, last_epoch=0))).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 1)
    assert _part(ask(Fetch("t", offset=2, last_epoch=2))).error_code == Code.OFFSET_OUT_OF_RANGE


def test_compaction_leaves_holes_and_the_last_batch_of_a_producer(ask: Asker) -> None:
    ask(Init(None))
    for sequence, key in enumerate((b"a", b"b", b"a")):
        ask(Produce("t", writer="w", sequence=2 * sequence, values=(b"1", b"2"), keys=(key, b"x")))
    ask(Produce("t", values=(b"3",), keys=(b"a",)))
    log = ask.cluster.topic("t").partitions[0].log
    compact(log, log.end)
    left = [(one.offset, one.key, one.value) for kept in log.batches for one in records(kept)]
    assert left == [(3 - 1, b"b", b"1"), (5, b"x", b"2"), (6, b"a", b"3")]
    assert [(kept.base_offset, kept.next_offset) for kept in log.batches] == [(2, 4), (4, 6), (6, 7)]
    assert all(is_intact(kept.data, sent(kept.data)) for kept in log.batches)
    compact(log, log.end)
    assert ask(Produce("t", writer="w", sequence=6)).partitions[0].error_code == 0
    assert log.producers.known[0].last_sequence == 6


def test_a_producers_last_batch_may_be_empty(ask: Asker) -> None:
    ask(Init(None))
    ask(Produce("t", writer="w", values=(b"1",), keys=(b"a",)))
    ask(Produce("t", values=(b"2",), keys=(b"a",)))
    log = ask.cluster.topic("t").partitions[0].log
    compact(log, log.end)
    assert [(kept.records, kept.next_offset - kept.base_offset) for kept in log.batches] == [(0, 1), (1, 1)]
    assert is_intact(log.batches[0].data, sent(log.batches[0].data))
    assert list(records(log.batches[0])) == []


def test_memory_gives_a_pair_that_nobody_has() -> None:
    assert Memory(0).pair("w") == (-1, -1)
