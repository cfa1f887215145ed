"""The plan and the outcome of a failover, failback or cut-over, as documents. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ferry import clock
from ferry.errors import ExitCode, count_of
from ferry.ledger.recovery_record import Stage, iso
from ferry.ledger.run_report import Skipped, time_now
from ferry.ledger.state import RecoveryRecord
from ferry.pipeline.tables import Table
from ferry.recovery.moving import GroupMove, GroupOutcome, PartitionMove, PlaceShown
from ferry.recovery.not_copied import NotCopied
from ferry.recovery.options import RecoveryOptions
from ferry.syncs.group_decision import Placement

RECOVERY_REPORT_VERSION = 1


@dataclass(frozen=True)
class Confirmation:
    """Who confirmed a plan, and which partitions go back with this person's consent (of RecoveryPlan.ahead)."""

    by: str
    back: tuple[PlaceShown, ...] = ()


@dataclass(frozen=True)
class RecoveryPlan:
    """What would be written."""

    options: RecoveryOptions
    flow: str
    stage: str = ""
    away: str = ""  # why the source does not answer; empty if it does
    source_cluster: str = ""
    moves: tuple[GroupMove, ...] = ()
    unread: tuple[str, ...] = ()
    left_out: tuple[Skipped, ...] = ()
    checkpoints_as_of: int | None = None
    missing: tuple[NotCopied, ...] = ()
    known_until: int | None = None  # (ms) when records were last copied, if the source does not answer (None: not known)
    losses: tuple[str, ...] = ()
    copy: str = ""
    notices: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # a person should solve them first; they do not stop a failover
    steps: tuple[tuple[str, float], ...] = ()

    @property
    def ahead(self) -> tuple[PlaceShown, ...]:
        return tuple(place for move in self.moves for place in move.ahead)

    @property
    def nothing_left(self) -> bool:
        """Whether nobody has to confirm anything: an earlier try ended the failover, and no group has come since."""
        return self.stage == Stage.FAILED_OVER and not self.moves and not self.unread

    @property
    def missing_offsets(self) -> int | None:
        """How many offsets are not on the other cluster; None when that is not known."""
        return None if any(entry.offsets is None for entry in self.missing) else sum(entry.offsets or 0 for entry in self.missing)

    def document(self) -> dict[str, Any]:
        return {
            "version": RECOVERY_REPORT_VERSION,
            "command": self.options.command,
            "flow": self.flow,
            "run_id": self.options.run_id,
            "mode": self.options.mode.value,
            "stage": self.stage,
            "source_away": self.away,
            "groups": [move.document() for move in self.moves],
            "groups_unread": list(self.unread),
            "left_out": [vars(entry) for entry in self.left_out],
            "positions_from": "the source" if self.checkpoints_as_of is None else "checkpoints",
            "checkpoints_as_of": iso(self.checkpoints_as_of),
            "missing": [vars(entry) for entry in self.missing],
            "missing_offsets": self.missing_offsets,
            "known_until": iso(self.known_until),
            "copy": self.copy,
            **{name: list(getattr(self, name)) for name in ("losses", "notices", "problems")},
            "steps": [{"step": step, "seconds": round(seconds, 3)} for step, seconds in self.steps],
            "seconds": round(sum(seconds for _, seconds in self.steps), 3),
        }


@dataclass(frozen=True)
class RecoveryReport:
    """What was done."""

    plan: RecoveryPlan  # the plan that a person confirmed
    record: RecoveryRecord  # the flow's record now
    groups: tuple[GroupOutcome, ...] = ()  # the result of each group
    reverse: tuple[str, ...] = ()
    verified: str = ""
    problems: tuple[str, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    finished: str = field(default_factory=time_now)

    @property
    def undone(self) -> tuple[str, ...]:
        """Groups that were not written, each with the reason."""
        return tuple(f"group {entry.move.group}: {problem}" for entry in self.groups if not entry.done for problem in entry.problems)

    @property
    def exit_code(self) -> ExitCode:
        """5 if some groups could not be written or read, or if a later step failed. `plan.unread` does not count: it is older."""
        return ExitCode.PARTLY_FAILED if self.undone or self.problems else ExitCode.DONE

    def document(self) -> dict[str, Any]:
        steps, problems = (*self.plan.steps, *self.steps), (*self.plan.problems, *self.problems)
        return {
            **replace(self.plan, stage=self.record.stage, steps=steps, problems=problems).document(),
            "recovery": self.record.recovery,
            "confirmed_by": self.record.confirmed_by,
            "groups": [entry.document() for entry in self.groups],
            "reverse": list(self.reverse),
            "verified": self.verified,
            "undone": list(self.undone),
            "finished": self.finished,
            "exit_code": int(self.exit_code),
        }


def notes(plan: RecoveryPlan) -> list[str]:
    """The lines that a person reads beside the tables."""
    texts = [f"without the source: {plan.away}"] if plan.away else []
    texts += [f"last copy: {plan.copy}"] if plan.copy else []
    texts += [*plan.notices, *plan.problems, *plan.unread, *(f"left out: {entry.what}: {entry.reason}" for entry in plan.left_out)]
    return texts + ([f"lost at the source before, and not acknowledged: {'; '.join(plan.losses)}"] if plan.losses else [])


def outcome_lines(outcome: RecoveryReport) -> Iterator[str]:
    """What was done, in lines. The caller shows what is undone, and the problems."""
    written = sum(entry.written for entry in outcome.groups)
    done = sum(entry.done for entry in outcome.groups)
    if outcome.groups:
        groups = f"{done} of {count_of(len(outcome.groups), 'group')} done"
        yield f"{outcome.plan.flow} is {outcome.record.stage}: {groups}, {count_of(written, 'offset')} written"
    else:
        told = "no group was moved" if outcome.problems else "done, no group is left to move"
        yield f"{outcome.plan.flow} is {outcome.record.stage} since {iso(outcome.record.at)} ({outcome.record.phase}): {told}"
    yield from outcome.reverse
    if outcome.verified:
        yield f"verified: {outcome.verified}"


def group_table(plan: RecoveryPlan) -> Table:
    """The table that a person confirms: one row for each partition of each group."""
    rows: list[tuple[str, ...]] = []
    for move in plan.moves:
        told = move.obstacle
        if not told and move.members_at_origin:
            told = f"still has {count_of(move.members_at_origin, 'member')} on the cluster that it leaves"
        if told:
            rows.append((move.group, "", "", "", "", told))
        for entry in move.partitions:
            numbers = map(_number, (entry.offset, entry.wanted, entry.present))
            where = f"{entry.remote_topic or entry.topic}-{entry.partition}"
            rows.append((move.group, where, *numbers, how(entry, backwards=plan.options.backwards)))
    return Table(f"{plan.flow}: groups", ("group", "partition", "is at", "goes on at", "there now", "how"), rows)


def how(entry: PartitionMove, *, backwards: bool = False) -> str:
    if entry.action is Placement.NONE:
        return f"not written: {entry.reason}"
    if entry.action is Placement.AHEAD and not backwards:
        return f"left alone: {entry.reason}"
    again = "reads some again" if entry.re_reads is None else f"reads at most {entry.re_reads:,} again"
    quality = "exact" if entry.exact else f"{again}: {entry.reason}" if entry.reason else again
    if entry.action is Placement.UP_TO_DATE:
        return f"is there already, {quality}"
    if entry.action in {Placement.AHEAD, Placement.BACK}:
        return f"goes BACK, {quality}"
    return quality


def missing_table(plan: RecoveryPlan) -> Table:
    unknown = "unknown" if not plan.known_until else f"unknown since {iso(plan.known_until)}"
    rows = [
        (one.topic, str(one.partition), _number(one.start), _number(one.end) or unknown, _number(one.offsets) or "unknown", one.reason)
        for one in plan.missing
    ]
    return Table(f"{plan.flow}: not on the other side", ("topic", "partition", "from", "until", "offsets", "why"), rows)


def for_page(plan: RecoveryPlan, rows: int) -> dict[str, Any]:
    """The plan for the page. `tables`: those that people read, at most `rows` rows of each.

    `counts`: of groups, of those that are not exact or cannot be written, and of partitions with records that are not on the other side.
    """
    tables = {"groups": group_table(plan), "missing": missing_table(plan)}
    shown = {name: {"columns": list(one.columns), "rows": one.texts[:rows], "total": len(one.rows)} for name, one in tables.items()}
    counts = {
        "groups": len(plan.moves),
        "inexact": sum(not move.exact for move in plan.moves),
        "obstacles": sum(bool(move.obstacle) for move in plan.moves),
        "missing": len(plan.missing),
    }
    return {"tables": shown, "counts": counts}


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


class Stopwatch:
    """Measures how long steps take, as (step, seconds), after those `before`; a step that raises counts too.

    A step that has the name of the last one is the rest of it.
    """

    def __init__(self, before: tuple[tuple[str, float], ...] = ()) -> None:
        self.steps = before

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = clock.monotonic()
        try:
            yield
        finally:
            seconds = clock.monotonic() - began
            if self.steps and self.steps[-1][0] == name:
                seconds, self.steps = seconds + self.steps[-1][1], self.steps[:-1]
            self.steps += ((name, seconds),)
