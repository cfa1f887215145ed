"""What the report of a recovery ends with, and what keeps none."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.clusters.open_cluster import OpenCluster
from ferry.errors import ConfigError, ExitCode, NotAuthorized
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.state import RecoveryRecord
from ferry.recovery import failover
from ferry.recovery.moving import GroupMove, GroupOutcome, PartitionMove, with_refusals
from ferry.recovery.not_copied import NotCopied
from ferry.recovery.options import Mode, RecoveryOptions
from ferry.recovery.recovery_report import RecoveryPlan, RecoveryReport
from ferry.syncs.group_decision import Placement

pytestmark = pytest.mark.unit

MOVE = GroupMove("g", "", ())


@pytest.mark.parametrize(
    ("groups", "problems", "code"),
    [
        ((GroupOutcome(MOVE, done=True),), (), ExitCode.DONE),
        ((GroupOutcome(MOVE, done=False, problems=("it has members",)),), (), ExitCode.PARTLY_FAILED),
        ((), ("the way back could not be prepared",), ExitCode.PARTLY_FAILED),
    ],
)
def test_the_exit_code_is_that_of_what_was_done(groups: tuple[GroupOutcome, ...], problems: tuple[str, ...], code: ExitCode) -> None:
    """A group that the look could not read, and that was moved then, is done."""
    plan = RecoveryPlan(RecoveryOptions("failover", "r"), "A->B", unread=("group g: timed out",))
    assert failover.exit_code_of(plan) is ExitCode.PARTLY_FAILED
    report = RecoveryReport(plan, RecoveryRecord("A->B", "", "", "failed-over", "", 0, 0), groups, problems=problems)
    assert report.exit_code is code
    assert report.document()["exit_code"] == int(code)


def test_a_count_that_fails_does_not_stop_a_failover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are counted for people; whatever stops an ordinary run must not stop this."""

    def refused(*_: Any) -> None:
        raise ConfigError("both flows may not run together")

    unknown = (NotCopied("t", 0, "A.t", 7, None, None),)
    monkeypatch.setattr(failover, "plan_run", refused)
    monkeypatch.setattr(failover, "perhaps_not_copied", lambda _: (unknown, 5))
    opened = cast("OpenFlow", SimpleNamespace(flow=SimpleNamespace(name="A->B")))
    missing, known_until, problems = failover.count_missing(opened, RecoveryOptions("failover", "r"), away=False)
    assert (missing, known_until) == (unknown, 5)
    assert "ConfigError: both flows may not run together" in problems[0]


def test_a_rehearsal_counts_the_groups_that_a_real_failover_would_write() -> None:
    def partition(action: Placement) -> PartitionMove:
        return PartitionMove("t", 0, "A.t", 5, None, 5, action, True, 0, "")

    writes, stands = (partition(Placement.WRITE),), (partition(Placement.UP_TO_DATE),)
    refused = {"refused": NotAuthorized("grant Read on group refused")}
    groups = SimpleNamespace(refused=lambda names: {name: refused[name] for name in names if name in refused})
    cluster = cast("OpenCluster", SimpleNamespace(groups=lambda: nullcontext(groups)))
    found = [
        GroupMove("g", "", writes),
        GroupMove("there", "", stands),
        GroupMove("busy", "has members", writes),
        GroupMove("refused", "", writes),
    ]
    moves = with_refusals(cluster, found)
    assert [move.obstacle for move in moves] == ["", "", "has members", "NotAuthorized: grant Read on group refused"]
    plan = RecoveryPlan(RecoveryOptions("failover", "r", Mode.REHEARSAL), "A->B", moves=moves)
    assert "a real failover also copies, and writes 1 group" in failover.rehearsed(plan)[0]
    assert failover.exit_code_of(plan) is ExitCode.PARTLY_FAILED
