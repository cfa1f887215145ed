"""What the recovery DAGs may be asked for, and the question that they ask."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.airflow.recovering import document_of, markdown, who
from ferry.airflow.recovery_params import CUTOVER, FAILBACK, FAILOVER, options_of, recovery_given
from ferry.errors import ArgumentError
from ferry.recovery.moving import GroupMove, PartitionMove
from ferry.recovery.not_copied import NotCopied
from ferry.recovery.options import Mode, RecoveryOptions
from ferry.recovery.recovery_report import RecoveryPlan
from ferry.syncs.group_decision import Placement

pytestmark = pytest.mark.airflow


def asked(**params: Any) -> dict[str, Any]:
    return {"params": params, "dag_run": SimpleNamespace(run_id="manual__1")}


def test_defaults_are_those_of_the_commands() -> None:
    assert recovery_given(FAILOVER, asked()) == {
        "last_copy": True,
        "without_source": False,
        "groups": None,
        "backwards": False,
        "dry_run": False,
    }
    assert recovery_given(FAILBACK, asked())["tail"] == "copy"
    assert recovery_given(CUTOVER, asked(verify=False))["verify"] is False
    options = options_of(FAILOVER, asked(dry_run=True, groups="g-.*", backwards=True))
    assert (options.run_id, options.mode, options.only, options.backwards) == ("manual__1", Mode.DRY_RUN, "g-.*", True)


@pytest.mark.parametrize(
    ("command", "params", "named"),
    [
        (FAILOVER, {"backward": True}, "did you mean backwards"),
        (FAILOVER, {"dry_run": "false"}, "dry_run of the run must be true or false"),
        (FAILOVER, {"groups": "("}, "no regular expression"),
        (FAILOVER, {"groups": 7}, "must be a regular expression"),
        (FAILOVER, {"tail": "copy"}, "tail"),
        (FAILBACK, {"tail": "drop"}, "copy or leave"),
        (CUTOVER, {"quiet_seconds": -1}, "seconds of quiet"),
        (CUTOVER, {"quiet_seconds": float("nan")}, "seconds of quiet"),
        (CUTOVER, {"quiet_seconds": True}, "number of seconds"),
    ],
)
def test_wrong_parameters_are_refused(command: str, params: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        options_of(command, asked(**params))


def test_the_question_shows_names_as_they_are() -> None:
    """A group's name is whatever somebody typed: it makes no table, link or element."""
    evil = "a|b\n<img src=x> [x](y) `c`"
    partition = PartitionMove("t", 0, "A.t", 5, None, 7, Placement.WRITE, exact=True, re_reads=0, reason="")
    plan = RecoveryPlan(RecoveryOptions("failover", "r"), "A->B", moves=(GroupMove(evil, "", (partition,)),), copy="<b>")
    plan = RecoveryPlan(**{**vars(plan), "missing": (NotCopied("t", 0, "A.t", 7, None, None),), "known_until": 1_790_000_000_000})
    body = markdown(plan)
    (row,) = [line for line in body.splitlines() if "exact" in line]
    assert row.count("|") - row.count("\\|") == 7, "six columns"
    assert "\\<img src=x\\> \\[x\\](y) \\`c\\`" in row
    assert "unknown since 2026-09-21" in body
    assert "<" not in body.replace("\\<", "")


def test_a_task_leaves_short_tables_and_whole_counts_to_the_page() -> None:
    stays = PartitionMove("t", 1, "A.t", 5, 9, 7, Placement.AHEAD, exact=True, re_reads=0, reason="it is at 9")
    reads = PartitionMove("t", 0, "A.t", 5, None, 7, Placement.WRITE, exact=False, re_reads=3, reason="")
    moves = (GroupMove("used", "it has members", ()), *(GroupMove(f"g{number}", "", (stays, reads), 2) for number in range(5_000)))
    missing = tuple(NotCopied("t", number, "A.t", 7, 9, 2) for number in range(300))
    plan = RecoveryPlan(RecoveryOptions("failover", "r"), "A->B", moves=moves, missing=missing)
    found = json.loads(json.dumps(document_of(plan)))
    assert found["counts"] == {"groups": 5_001, "inexact": 5_000, "obstacles": 1, "missing": 300}
    groups, rest = found["tables"]["groups"], found["tables"]["missing"]
    assert (len(groups["rows"]), groups["total"], len(rest["rows"]), rest["total"], found["missing_offsets"]) == (
        200,
        15_001,
        200,
        300,
        600,
    )
    assert groups["columns"] == ["group", "partition", "is at", "goes on at", "there now", "how"]
    assert groups["rows"][0] == ["used", "", "", "", "", "it has members"]
    assert [row[-1] for row in groups["rows"][1:4]] == [
        "still has 2 members on the cluster that it leaves",
        "left alone: it is at 9",
        "reads at most 3 again",
    ]
    assert "groups" not in found, "each may have thousands of partitions"


def test_who_said_yes() -> None:
    assert who({"responded_by_user": {"id": "7", "name": "anna"}}) == "anna, in Airflow"
    assert who({}) == "somebody, in Airflow"
