"""The notes of a DAG run and of its skipped tasks, made from what its tasks left."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.airflow.run_note import FAILURE, LEFT_OUT, MOST_CHARACTERS, SIGNATURE, STOPPED, VERDICT, note_skipped, noted, reason_in

pytestmark = pytest.mark.airflow

BEHIND = "A->B is 7 records behind"
FROM_THE_PAGE = "Started from the Ferry page"


def note_of(left: Mapping[tuple[str, str], object]) -> str:
    """Ferry's part of the note of a run that has none yet, without its signature."""
    note = noted("", left)
    assert note.endswith(SIGNATURE) or not note
    return note.removesuffix(SIGNATURE)


def failure(task: str, problem: str = "no such topic") -> dict[str, str]:
    return {"task": task, "error": "ArgumentError", "problem": problem, "next_step": "look at the name", "url": f"http://airflow/{task}"}


def test_a_run_without_trouble_says_how_far_the_flow_is() -> None:
    assert note_of({("check_limits", VERDICT): BEHIND}) == BEHIND


def test_the_first_failure_unless_the_report_names_the_worst() -> None:
    left = {("plan_run", FAILURE): failure("plan_run"), ("sync_groups", FAILURE): failure("sync_groups")}
    assert note_of(left).split("\n\n") == ["no such topic (ArgumentError)", "next: look at the name", "log: http://airflow/plan_run"]
    left |= {
        ("check_limits", VERDICT): BEHIND,
        ("report_outcome", FAILURE): failure("report_outcome", "run manual__1+x of A->B: 1 partition failed"),
    }
    assert note_of({("check_limits", FAILURE): failure("check_limits", "A->B: a limit is broken")}).startswith("a limit is broken (")
    told = ["1 partition failed (ArgumentError)", "next: look at the name", "log: http://airflow/report_outcome", BEHIND]
    assert note_of(left).split("\n\n") == told


def test_the_page_reads_the_reason_from_it() -> None:
    note = note_of({("plan_run", FAILURE): failure("plan_run", "A->B: no such topic (t)"), ("check_limits", VERDICT): BEHIND})
    assert reason_in(note) == ("no such topic (t)", "ArgumentError")
    assert reason_in("") == ("", "")
    assert reason_in("I stopped it (again)\n\nlater more") == ("", "")
    assert reason_in(FROM_THE_PAGE) == ("", "")


@pytest.mark.parametrize("theirs", [FROM_THE_PAGE, "a test\n\n---\n\nof two paragraphs", "x" * 700])
def test_a_note_that_the_run_had_before_hides_no_reason_and_stays(theirs: str) -> None:
    left = {("plan_run", FAILURE): failure("plan_run"), ("check_limits", VERDICT): BEHIND}
    note = noted(theirs, left)
    assert note == f"{note_of(left)}{SIGNATURE}\n\n{theirs}"
    assert reason_in(note) == ("no such topic", "ArgumentError")
    assert noted(note, {("check_limits", VERDICT): BEHIND}) == f"{BEHIND}{SIGNATURE}\n\n{theirs}", "the run was cleared, and is well now"
    assert noted(note, {}) == theirs
    assert noted(theirs, {}) == theirs


@pytest.mark.parametrize("length", [100, 300, 600, 790, 850, 970, 1000])
def test_what_others_wrote_stays_whole_and_the_reason_is_the_last_to_go(length: int) -> None:
    theirs, left = "y" * length, {("plan_run", FAILURE): failure("plan_run", "x" * 400), ("check_limits", VERDICT): BEHIND}
    note = noted(theirs, left)
    assert len(note) <= MOST_CHARACTERS
    assert note.endswith(theirs)
    assert reason_in(note)[1] == ("ArgumentError" if length < 850 else "")
    assert ("next: " in note) is (length < 850)


def test_what_other_tasks_leave_makes_no_note() -> None:
    assert note_of({("plan_run", "return_value"): {"needs_copy": True}}) == ""


@pytest.mark.parametrize("length", [700, 1000, 5000])
def test_it_fits_into_airflows_column_and_keeps_the_next_step(length: int) -> None:
    note = note_of({("plan_run", FAILURE): failure("plan_run", "x" * length), ("check_limits", VERDICT): BEHIND})
    assert len(note) <= MOST_CHARACTERS
    assert note.endswith(f"next: look at the name\n\nlog: http://airflow/plan_run\n\n{BEHIND}")
    assert ("…" in note) is (length > 800)
    assert reason_in(note)[1] == "ArgumentError"


def test_a_run_that_somebody_stopped_on_the_page_says_so() -> None:
    stopped = f"{FROM_THE_PAGE}\n\n{STOPPED}"
    assert reason_in(stopped) == ("somebody stopped it on the Ferry page", "")
    assert reason_in(f"{STOPPED}, says a colleague") == ("", "")
    assert reason_in(noted(stopped, {("plan_run", FAILURE): failure("plan_run")})) == reason_in(stopped)


@pytest.mark.parametrize(
    ("state", "note", "later"),
    [
        ("skipped", None, "Skipped by Ferry: done 3 s ago"),
        ("skipped", "Skipped by Ferry: done 9 s ago", "Skipped by Ferry: done 3 s ago"),
        ("skipped", "a person's", "a person's"),
        ("success", "Skipped by Ferry: done 9 s ago", ""),  # it was cleared, and ran
        ("success", None, None),
    ],
)
def test_a_task_that_was_left_out_says_why(state: str, note: str | None, later: str | None) -> None:
    left = {("plan_run", LEFT_OUT): {"sync_acls": "done 3 s ago"}, ("check_limits", VERDICT): BEHIND}
    task: Any = SimpleNamespace(task_id="sync_acls", state=state, note=note)
    note_skipped([task], left)
    assert task.note == later


def test_a_task_that_skipped_itself_has_a_log_and_gets_no_note() -> None:
    task: Any = SimpleNamespace(task_id="sync_acls", state="skipped", note=None)
    note_skipped([task], {("check_limits", VERDICT): BEHIND})
    assert task.note is None
