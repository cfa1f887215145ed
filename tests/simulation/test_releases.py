"""What older releases answer otherwise, beyond the script that is asked of real brokers."""

from __future__ import annotations

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import (
    V1_END,
    V1_OFFSETS,
    V1_PRODUCE,
    AddOffsets,
    AddPartitions,
    CommitInTransaction,
    End,
    Init,
    ListOffsets,
    Produce,
)
from tests.simulation.asks_of_admins import CreateTopics, DescribeConfigs, FindCoordinators
from tests.simulation.codes import Code, codes_of
from tests.simulation.releases import Release
from tests.simulation.transactions import State

pytestmark = pytest.mark.unit
OLD: Release = (2, 8)
CHECKING: Release = (3, 9)


def _asker(release: Release, version: int) -> Asker:
    """With a topic, coordinators, and a transaction of two epochs."""
    ask = Asker(release=release, transaction_version=version)
    for kind, key in ((0, "g"), (1, "x")):
        for _ in range(2):
            ask(FindCoordinators((key,), kind))
    ask(CreateTopics("t", 2))
    ask(Init("x"))
    ask(Init("x", holding="w"))
    return ask


@pytest.mark.parametrize(("release", "version"), [(OLD, 0), (CHECKING, 0), ((4, 3), 1)])
def test_a_batch_that_its_coordinator_does_not_know_hangs_before_brokers_ask(release: Release, version: int) -> None:
    """KIP-890, part 1: older brokers take it, and no marker ever ends it."""
    ask = _asker(release, version)
    taken = codes_of(ask(Produce("t", writer="w", id="x", version=V1_PRODUCE))) == {Code.NONE}
    assert taken == (release == OLD)
    assert codes_of(ask(End("x", version=V1_END))) == {Code.INVALID_TXN_STATE}
    assert ask(ListOffsets("t", committed=True)).topics[0].partitions[0].offset == 0
    assert ask(ListOffsets("t")).topics[0].partitions[0].offset == int(taken)


@pytest.mark.parametrize(("release", "version"), [(CHECKING, 0), ((4, 0), 1), ((4, 3), 1)])
@pytest.mark.parametrize("in_group", [False, True])
def test_a_later_epoch_in_an_open_transaction_stops_its_end_before_4_0(release: Release, version: int, in_group: bool) -> None:
    """The partition refuses the marker, so the coordinator gives the end up: the id is decided for ever."""
    ask = _asker(release, version)
    ask(AddPartitions("x", "t"))
    ask(Produce("t", writer="w", id="x", version=V1_PRODUCE))
    ask(AddOffsets("x", "g"))
    ask(CommitInTransaction("x", "g", "t", offset=1, version=V1_OFFSETS))
    later = (
        CommitInTransaction("x", "g", "t", epochs=1, version=V1_OFFSETS)
        if in_group
        else Produce("t", writer="w", id="x", epochs=1, version=V1_PRODUCE)
    )
    stops = codes_of(ask(later)) == {Code.NONE}
    assert stops == (release < (4, 0))
    assert codes_of(ask(End("x", version=V1_END))) == {Code.NONE}
    ask.cluster.settle()
    assert len(ask.cluster.steps) == 0
    known = ask.cluster.transactions.ids["x"]
    assert known.state is (State.PREPARE_COMMIT if stops else State.COMPLETE_COMMIT)
    assert codes_of(ask(Init("x", writer="next"))) == {Code.CONCURRENT_TRANSACTIONS if stops else Code.NONE}
    for partition in ask.cluster.topic("__transaction_state").partitions:
        ask.cluster.elect(partition, 1)
    ask.cluster.settle()
    assert known.state is (State.PREPARE_COMMIT if stops else State.EMPTY)


def test_each_release_has_its_topic_configs() -> None:
    found = {}
    for release in (OLD, CHECKING, (4, 3), (4, 4)):
        ask = Asker(release=release)
        ask(CreateTopics("t"))
        found[release] = {one.name for one in ask(DescribeConfigs("t")).results[0].configs}
    assert "message.format.version" in found[CHECKING] - found[4, 3]
    assert found[4, 4] - found[4, 3] >= {"max.decompressed.message.bytes"}
    assert found[4, 3] - found[OLD] >= {"message.timestamp.after.max.ms", "remote.storage.enable"}
