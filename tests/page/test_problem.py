"""Errors as the page shows them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from ferry.config.problems import PropertyError
from ferry.errors import AuthenticationFailed, PositionDisagrees
from ferry.page.problem import Problem, ReaderDied, ReadTimedOut, problem_of

pytestmark = pytest.mark.unit


def test_an_error_shows_its_class_its_message_and_what_to_do() -> None:
    found = problem_of(AuthenticationFailed("cluster A refuses u"))
    assert (found.error, found.message, found.next_step) == ("AuthenticationFailed", "cluster A refuses u", AuthenticationFailed.next_step)
    assert Problem(**asdict(found)) == found


def test_only_clusters_that_do_not_answer_are_unreachable() -> None:
    for error, unreachable in (
        (AuthenticationFailed("x"), True),
        (ReadTimedOut("x"), True),
        (ReaderDied("x"), False),
        (PositionDisagrees("t", 0, "x"), False),
        (ValueError("x"), False),
    ):
        assert problem_of(error).unreachable is unreachable, error


def test_the_text_of_a_foreign_error_is_not_shown() -> None:
    found = problem_of(ValueError("password=abc"))
    assert found.error == "ReadFailed"
    assert "abc" not in found.message
    assert "ValueError" in found.message


def test_subclasses_of_a_package_are_shown_as_the_class_that_the_docs_name() -> None:
    found = problem_of(PropertyError(Path("mm2.properties"), 3, "A.x", "is wrong"))
    assert (found.error, found.message) == ("ConfigError", "mm2.properties:3: A.x: is wrong")
