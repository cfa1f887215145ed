"""Failback and planned cut-over on real brokers, judged by librdkafka's clients."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from confluent_kafka import Consumer, Producer
from tests.log_ends import log_ends
from tests.opened import sync_groups
from tests.recovery.rooms import Room, commit, everything, from_record, numbers, read_on
from tools.kafka import SandboxCluster
from tools.kafka.topics import delete_topics

from ferry.config import Flow, load_config
from ferry.errors import RecoveryStopped
from ferry.ledger.open_flow import open_flow
from ferry.ledger.run_report import RunReport
from ferry.recovery import switch_over as planned_move
from ferry.recovery.options import RecoveryOptions
from ferry.recovery.recovery_report import Confirmation, RecoveryPlan
from ferry.syncs.group_placing import GroupPlacer

pytestmark = pytest.mark.brokers

RunFlow = Callable[[Flow], RunReport]
GroupMember = Callable[..., AbstractContextManager[Consumer]]
QUIET = ("--yes", "--quiet-seconds", "0.5")


class KilledError(BaseException):
    """The process is gone: nothing is tidied up."""


def groups_of(room: Room, count: int) -> list[str]:
    return [f"{room.topic}-{secrets.token_hex(4)}" for _ in range(count)]


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_there_and_back_in_short(room: Room, run_flow: RunFlow, topic_factory: Callable[..., str]) -> None:
    """What was produced at the target since the failover goes back once, and a group goes on exactly."""
    (group,) = groups_of(room, 1)
    topic_factory(room.target, partitions=2, name=room.topic)
    room.produce(room.source, room.topic, 30)
    run_flow(room.there)
    commit(room.source, group, room.topic, {0: 5, 1: 7})
    assert room.command("failover", "--yes")[0].exit_code == 0
    assert read_on(room.target, group, room.remote) == from_record({0: 5, 1: 7}, 30)
    room.produce(room.target, room.topic, 20)
    commit(room.target, group, room.remote, {0: 15, 1: 15})
    commit(room.target, group, room.topic, {0: 4, 1: 5})
    ended, document = room.command("failback", *QUIET)
    assert (ended.exit_code, document["stage"], document["undone"]) == (0, "replicating", [])
    back, since = f"{room.there.target.alias}.{room.topic}", [list(range(30 + number, 50, 2)) for number in range(2)]
    assert numbers(room.source, back) == since
    assert numbers(room.source, room.topic) == numbers(room.target, room.remote) == [list(range(number, 30, 2)) for number in range(2)]
    assert read_on(room.source, group, back) == {0: since[0][4:], 1: since[1][5:]}
    assert [run_flow(flow).records for flow in (room.there, room.back)] == [0, 0]


@pytest.mark.long
@pytest.mark.parametrize("room", ["default", pytest.param("identity", marks=pytest.mark.drill)], indirect=True)
def test_failover_and_failback(
    room: Room, run_flow: RunFlow, topic_factory: Callable[..., str], group_member: GroupMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was produced after the failover goes back, once; groups go on exactly; nothing goes round afterwards."""
    identity = room.remote == room.topic
    first, second, busy = groups_of(room, 3)
    if not identity:
        topic_factory(room.target, partitions=2, name=room.topic)
        room.produce(room.target, room.topic, 6)  # of before the failover: they stay there
        room.produced = 0
    room.produce(room.source, room.topic, 30)
    run_flow(room.there)
    for group in (first, second, busy):
        commit(room.source, group, room.topic, {0: 5, 1: 7})
    assert room.command("failover", "--yes")[0].exit_code == 0
    if not identity:
        room.produce(room.source, room.topic, 10)  # the tail: never copied before the failover
    tail = room.produced
    # Consumers go on at the target: one has read all that had come from the source, one not, one is still there.
    commit(room.target, first, room.remote, {0: 15, 1: 15} if identity else {0: 20, 1: 20})
    commit(room.target, second, room.remote, {0: 9, 1: 7})
    room.produce(room.target, room.topic, 20)
    if not identity:
        for group in (first, second):
            commit(room.target, group, room.topic, {0: 3 + 4, 1: 3 + 5})
    before = everything(room.source), everything(room.target)
    for option in ("--dry-run", "--rehearse"):
        ended, document = room.command("failback", option)
        assert ended.exit_code == 0
        assert 20 <= document["missing_offsets"] <= 22, "with markers of the copies"
    assert (everything(room.source), everything(room.target)) == before
    with monkeypatch.context() as patch:
        patch.setattr(GroupPlacer, "write", _killed)
        with pytest.raises(KilledError):
            room.command("failback", *QUIET)
    with group_member(room.target, busy, room.remote):
        ended, document = room.command("failback", *QUIET)
        assert (ended.exit_code, document["stage"]) == (5, "failing-back")
        assert "1 member on" in document["undone"][0]
        assert "equal on both sides" in document["verified"]
    ended, document = room.command("failback", *QUIET, "--groups", second)
    assert (ended.exit_code, document["stage"], [busy in text for text in document["problems"]]) == (5, "failing-back", [True])
    commit(room.source, first, room.topic, {0: 18, 1: 18})  # it has gone on at the source: it is not touched again
    ended, document = room.command("failback", *QUIET)
    assert (ended.exit_code, document["stage"]) == (0, "replicating")
    assert document["undone"] == []
    # A task that was killed before it could say so is tried again: it says that it is done, and touches nothing but its fence.
    before = log_ends(room.source, room.target)
    options = RecoveryOptions("failback", document["run_id"])
    plan = RecoveryPlan(options, room.there.name, "failing-back")
    with open_flow(room.there) as opened:
        switch = planned_move.failback(opened, opened.back(room.back))
        again = planned_move.carry_out_switch_over(switch, plan, Confirmation("x"), "")
    assert (again.exit_code, again.record.stage, again.record.recovery) == (0, "replicating", document["recovery"])
    assert again.document()["groups"] == []
    changed = log_ends(room.source, room.target).items() ^ before.items()
    assert {log.split()[1] for log, _ in changed} <= {"__transaction_state"}
    # Each record once: the source has its own and what was produced at the target since, the target all.
    back = room.topic if identity else f"{room.there.target.alias}.{room.topic}"
    own, since = [list(range(number, tail, 2)) for number in range(2)], [list(range(tail + number, tail + 20, 2)) for number in range(2)]
    if identity:
        assert numbers(room.source, room.topic) == [own[number] + since[number] for number in range(2)]
        assert numbers(room.target, room.topic) == [own[number] + since[number] for number in range(2)]
        assert read_on(room.source, first, room.topic) == from_record({0: 18, 1: 18}, room.produced)
        assert read_on(room.source, second, room.topic) == from_record({0: 9, 1: 7}, room.produced)
    else:
        assert numbers(room.source, back) == since
        assert numbers(room.source, room.topic) == numbers(room.target, room.remote) == own
        assert read_on(room.source, second, room.topic) == from_record({0: 9, 1: 7}, tail)
        for group in (first, second):
            assert read_on(room.source, group, back) == {0: since[0][4:], 1: since[1][5:]}
    assert not sync_groups(room.there, dry_run=True).left_out
    for flow in (room.there, room.back, room.there):
        assert run_flow(flow).records == 0


def _killed(*_: object) -> None:
    raise KilledError


@pytest.mark.drill
@pytest.mark.parametrize("room", ["identity"], indirect=True)
def test_what_stops_a_failback(room: Room, run_flow: RunFlow) -> None:
    """Nothing to come back from; producers that go on; a source that is another one."""
    with pytest.raises(RecoveryStopped, match="nothing to come back from"):
        room.command("failback", "--dry-run")
    room.produce(room.source, room.topic, 10)
    run_flow(room.there)
    assert room.command("failover", "--yes", "--no-last-copy")[0].exit_code == 0
    with _producing(room, room.target), pytest.raises(RecoveryStopped, match="records still arrive"):
        room.command("failback", *QUIET)
    delete_topics(room.source.client_settings(), room.topic)
    with pytest.raises(RecoveryStopped, match=r"has changed since it was copied: .* has no topic .*--rebuilt"):
        room.command("failback", *QUIET)
    # Built anew, it gets everything that the target holds, what had come from it too.
    restart = (f"{room.there.name}.ferry.on.recreate = restart", f"{room.back.name}.ferry.on.target.recreate = restart", "")
    room.config.write_text(room.config.read_text() + "\n".join(restart))
    (group,) = groups_of(room, 1)
    commit(room.target, group, room.topic, {0: 2, 1: 5})
    ended, _ = room.command("failback", *QUIET, "--rebuilt", "--tail", "leave")
    assert ended.exit_code == 0
    assert numbers(room.source, room.topic) == numbers(room.target, room.topic)
    assert read_on(room.source, group, room.topic) == from_record({0: 2, 1: 5}, room.produced)
    assert [run_flow(flow).records for flow in load_config(room.config).flows] == [0, 0]


@pytest.mark.drill
@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_a_planned_cut_over(room: Room, run_flow: RunFlow, group_member: GroupMember) -> None:
    """Drained, proven, moved; a group that still reads at the source is named and moved when it has stopped."""
    idle, busy = groups_of(room, 2)
    room.produce(room.source, room.topic, 30)
    run_flow(room.there)
    room.produce(room.source, room.topic, 10)
    commit(room.source, idle, room.topic, {0: 17, 1: 20})
    with _producing(room, room.source), pytest.raises(RecoveryStopped, match="records still arrive"):
        room.command("cutover", *QUIET)
    with group_member(room.source, busy, room.topic) as consumer:
        consumer.commit(asynchronous=False, offsets=[*_places(room.topic, {0: 2, 1: 3})])
        ended, document = room.command("cutover", *QUIET)
        assert (ended.exit_code, document["stage"]) == (5, "cutting-over")
    assert "left alone" not in str(document)
    assert "cutting over" in sync_groups(room.there).left_out
    ended, document = room.command("cutover", *QUIET)
    assert (ended.exit_code, document["stage"]) == (0, "cut-over")
    ended, document = room.command("cutover", *QUIET)  # for groups that come later
    assert (ended.exit_code, document["stage"], document["groups"]) == (0, "cut-over", [])
    assert read_on(room.target, busy, room.remote) == _behind(room, {0: 2, 1: 3})
    assert read_on(room.target, idle, room.remote) == _behind(room, {0: 17, 1: 20})


def _behind(room: Room, places: dict[int, int]) -> dict[int, list[int]]:
    records = numbers(room.source, room.topic)
    return {number: records[number][place:] for number, place in places.items()}


def _places(topic: str, offsets: dict[int, int]) -> list[object]:
    from confluent_kafka import TopicPartition  # noqa: PLC0415

    return [TopicPartition(topic, *entry) for entry in offsets.items()]


class _producing:  # noqa: N801 - reads as a phrase
    """A producer that nobody stopped, at the side where records are read from."""

    def __init__(self, room: Room, cluster: SandboxCluster) -> None:
        self._room, self._cluster, self._stop = room, cluster, threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap})
        while not self._stop.wait(0.1):
            producer.produce(self._room.topic, value=b"%d" % self._room.produced, partition=self._room.produced % 2)
            producer.flush(10)
            self._room.produced += 1
