"""Failover on real brokers, judged by librdkafka's clients. A source that is away is one whose servers nobody listens on."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.opened import explain_group, flow_status, read_recovery, sync_checkpoints, sync_groups
from tests.recovery.rooms import Room, commit, everything, from_record, read_on
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.config import Flow
from ferry.errors import FerryError, RecoveryStopped
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.recovery_record import Event, current_record
from ferry.ledger.run_report import RunReport
from ferry.recovery import failover
from ferry.recovery.keeper import RecoveryKeeper, abandon, keep_recovery
from ferry.syncs import group_placing
from ferry.syncs.group_placing import GroupPlacer

pytestmark = pytest.mark.brokers

RunFlow = Callable[[Flow], RunReport]
GroupMember = Callable[..., AbstractContextManager[Consumer]]
RECORDS = 30


class KilledError(BaseException):
    """The process is gone: nothing is tidied up."""


@pytest.mark.drill
def test_with_a_source_that_answers(room: Room, run_flow: RunFlow, group_member: GroupMember, topic_factory: Callable[..., str]) -> None:
    """A last copy, every group exact, one with members left out and done later; the group sync holds still until the flow comes back.

    What was produced between both tries, to a topic that is newer than the failover, goes back."""
    quick, slow, busy = (f"{room.topic}-{secrets.token_hex(4)}" for _ in range(3))
    room.produce(room.source, room.topic, RECORDS)
    assert run_flow(room.there).exit_code == 0
    room.produce(room.source, room.topic, RECORDS)
    for group, places in ((quick, {0: 28, 1: 30}), (slow, {0: 3, 1: 0}), (busy, {0: 20, 1: 21})):
        commit(room.source, group, room.topic, places)
    with group_member(room.target, busy, room.remote):
        ended, document = room.command("failover", "--yes")
        assert (ended.exit_code, document["stage"]) == (5, "failed-over")
        assert document["copy"].startswith("30 records")
        assert document["missing"] == []
        states = {entry["group"]: (entry["done"], entry["exact"]) for entry in document["groups"]}
        assert states == {quick: (True, True), slow: (True, True), busy: (False, True)}
        assert "1 member on" in document["undone"][0]
    assert read_on(room.target, quick, room.remote) == from_record({0: 28, 1: 30}, 60)
    assert read_on(room.target, slow, room.remote) == from_record({0: 3, 1: 0}, 60)
    # A consumer went on at the target, then another one began anew on purpose: neither is touched again.
    commit(room.target, quick, room.remote, {0: 1})
    commit(room.source, slow, room.topic, {0: 29, 1: 29})
    assert "failed over at" in sync_groups(room.there).left_out
    assert flow_status(room.there).stage == "failed-over"
    assert any("failed over at" in obstacle for obstacle in explain_group(room.there, slow).obstacles)
    if room.remote != room.topic:
        topic_factory(room.target, partitions=2, name=room.topic)
        room.produce(room.target, room.topic, 8)
    ended, document = room.command("failover", "--yes", "--no-last-copy")
    assert (ended.exit_code, [entry["group"] for entry in document["groups"]]) == (0, [busy])
    if room.remote != room.topic:
        assert run_flow(room.back).records == 8
    assert read_on(room.target, busy, room.remote) == from_record({0: 20, 1: 21}, 60)
    assert read_on(room.target, slow, room.remote) == from_record({0: 3, 1: 0}, 60)
    with pytest.raises(RecoveryStopped, match="come back with ferry failback"):
        CliRunner().invoke(app, ["failover", str(room.config), "--flow", room.back.name, "--yes"], catch_exceptions=False)
    ended = CliRunner().invoke(app, ["failover", str(room.config), "--flow", room.there.name, "--abandon"])
    assert ended.exit_code == 0
    assert not sync_groups(room.there, dry_run=True).left_out


@pytest.mark.long
@pytest.mark.parametrize("room", ["identity", pytest.param("default", marks=pytest.mark.drill)], indirect=True)
def test_with_a_source_that_does_not_answer(room: Room, run_flow: RunFlow) -> None:
    """Positions of the newest checkpoints, by the ledger of now; what is not copied is not known; a group ahead stays there."""
    reader, eager = (f"{room.topic}-{secrets.token_hex(4)}" for _ in range(2))
    away = room.away()
    with pytest.raises(RecoveryStopped, match="no checkpoints"):
        room.command("failover", "--yes", config=away)
    room.produce(room.source, room.topic, RECORDS)
    run_flow(room.there)
    commit(room.source, reader, room.topic, {0: 5, 1: 15})
    commit(room.source, eager, room.topic, {0: 5, 1: 5})
    sync_checkpoints(room.there)
    room.produce(room.source, room.topic, RECORDS)
    run_flow(room.there)
    commit(room.target, eager, room.remote, {0: 11, 1: 2})
    gone = room.command("failover", "--dry-run", config=away)[1]
    unasked = room.command("failover", "--dry-run", "--without-source")[1]
    assert unasked["groups"] == gone["groups"]
    assert unasked["source_away"] == "not asked"
    ended, document = room.command("failover", "--yes", config=away)
    assert (ended.exit_code, document["stage"], document["positions_from"]) == (0, "failed-over", "checkpoints")
    assert document["source_away"]
    assert document["known_until"], "records were copied, so it is known until when"
    assert {(entry["topic"], entry["end"], entry["start"]) for entry in document["missing"]} == {(room.topic, None, 30)}
    assert read_on(room.target, reader, room.remote) == from_record({0: 5, 1: 15}, 60)
    assert [entry["action"] for group in document["groups"] if group["group"] == eager for entry in group["partitions"]] == [
        "ahead",
        "write",
    ]
    assert read_on(room.target, eager, room.remote) == from_record({0: 11, 1: 5}, 60)


@pytest.mark.long
@pytest.mark.parametrize("room", ["identity"], indirect=True)
def test_a_dry_run_and_a_rehearsal_write_nothing(room: Room, run_flow: RunFlow) -> None:
    group = f"{room.topic}-{secrets.token_hex(4)}"
    room.produce(room.source, room.topic, RECORDS)
    before = everything(room.target), everything(room.source)
    for option in ("--dry-run", "--rehearse"):  # before the flow has ever run
        assert room.command("failover", option)[0].exit_code == 0
    assert (everything(room.target), everything(room.source)) == before
    run_flow(room.there)
    commit(room.source, group, room.topic, {0: 4, 1: 6})
    room.produce(room.source, room.topic, 10)
    sync_checkpoints(room.there)
    before = everything(room.target), everything(room.source)
    for option in ("--dry-run", "--rehearse"):
        for config in (room.config, room.away()):
            ended, document = room.command("failover", option, config=config)
            assert (ended.exit_code, document["mode"]) == (0, option.strip("-").replace("rehearse", "rehearsal"))
            assert [(entry["group"], entry["exact"]) for entry in document["groups"]] == [(group, True)]
            assert document["missing_offsets"] == (10 if config == room.config else None)
            assert document["seconds"] > 0
    assert (everything(room.target), everything(room.source)) == before


@pytest.mark.drill
@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_a_failover_that_was_killed_between_steps_goes_on(room: Room, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before and behind the write of every chunk of groups; the next try ends what the first began, and moves no group twice."""
    groups = sorted(f"{room.topic}-{secrets.token_hex(4)}" for _ in range(3))
    monkeypatch.setattr(group_placing, "GROUPS_AT_ONCE", 1)
    room.produce(room.source, room.topic, RECORDS)
    run_flow(room.there)
    for group in groups:
        commit(room.source, group, room.topic, {0: 5, 1: 5})
        commit(room.target, group, room.remote, {0: 9})  # ahead: it goes back, as a person wants it
    write = GroupPlacer.write

    def killed_at(number: int, *, behind: bool) -> Callable[..., object]:
        def act(*arguments: Any) -> object:
            nonlocal number
            number -= 1
            if number < 0:
                if behind:
                    write(*arguments)
                raise KilledError
            return write(*arguments)

        return act

    for number, behind in ((0, False), (0, True), (1, True)):
        with monkeypatch.context() as patch:
            patch.setattr(GroupPlacer, "write", killed_at(number, behind=behind))
            with pytest.raises(KilledError):
                room.command("failover", "--yes", "--no-last-copy", "--backwards")
    commit(room.target, groups[0], room.remote, {0: 12})  # a consumer has gone on meanwhile
    ended, document = room.command("failover", "--yes", "--no-last-copy", "--backwards")
    assert (ended.exit_code, document["stage"]) == (0, "failed-over")
    assert read_on(room.target, groups[0], room.remote) == from_record({0: 12, 1: 5}, 30)
    for group in groups[1:]:
        assert read_on(room.target, group, room.remote) == from_record({0: 5, 1: 5}, 30)


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_a_group_that_comes_after_nobody_was_asked_is_not_written(room: Room, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover that was done is typed again, and so asks nobody. A group that comes just before the write waits for the next one."""
    group, late = (f"{room.topic}-{secrets.token_hex(4)}" for _ in range(2))
    room.produce(room.source, room.topic, RECORDS)
    run_flow(room.there)
    commit(room.source, group, room.topic, {0: 5, 1: 5})
    command = ("failover", "--yes", "--no-last-copy")
    assert room.command(*command)[0].exit_code == 0

    def kept_late(opened: OpenFlow) -> AbstractContextManager[RecoveryKeeper]:
        commit(room.source, late, room.topic, {0: 4, 1: 4})
        return keep_recovery(opened)

    with monkeypatch.context() as patch:
        patch.setattr(failover, "keep_recovery", kept_late)
        ended, document = room.command(*command)
    assert (ended.exit_code, document["stage"], document["groups"]) == (0, "failed-over", [])
    assert late not in everything(room.target)["groups"]
    ended, document = room.command(*command)
    assert (ended.exit_code, [entry["group"] for entry in document["groups"]]) == (0, [late])


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_without_a_question_nothing_begins_anew(room: Room, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failover was done when nobody was asked, and is abandoned just before the write."""
    room.produce(room.source, room.topic, RECORDS)
    run_flow(room.there)
    command = ("failover", "--yes", "--no-last-copy")
    assert room.command(*command)[0].exit_code == 0

    def kept_late(opened: OpenFlow) -> AbstractContextManager[RecoveryKeeper]:
        abandon(opened, Event.FAILOVER_ABANDONED)
        return keep_recovery(opened)

    with monkeypatch.context() as patch:
        patch.setattr(failover, "keep_recovery", kept_late)
        with pytest.raises(RecoveryStopped, match="replicating now"):
            room.command(*command)
    assert current_record(room.there, read_recovery(room.there)).stage == "replicating"


@pytest.mark.parametrize("room", ["default"], indirect=True)
def test_a_failover_without_a_terminal_needs_yes(room: Room) -> None:
    with pytest.raises(FerryError, match="--yes"):
        room.command("failover")
