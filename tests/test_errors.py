"""Exit codes: one per kind of outcome, and which one wins."""

from __future__ import annotations

import pytest

from ferry import errors
from ferry.errors import EXIT_CODE_PRECEDENCE, ExitCode, FerryError, error_named, worst_exit_code

pytestmark = pytest.mark.unit


def test_the_first_of_the_precedence_wins() -> None:
    for index, code in enumerate(EXIT_CODE_PRECEDENCE):
        assert worst_exit_code(EXIT_CODE_PRECEDENCE[index:]) is code


def test_nothing_bad_is_done() -> None:
    assert worst_exit_code([]) is ExitCode.DONE
    assert worst_exit_code([ExitCode.DONE]) is ExitCode.DONE


def test_every_code_but_done_has_a_rank() -> None:
    assert set(EXIT_CODE_PRECEDENCE) == set(ExitCode) - {ExitCode.DONE}


def test_every_error_has_a_bad_exit_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FerryError)]
    assert len(kinds) > 15
    assert all(kind.exit_code in EXIT_CODE_PRECEDENCE for kind in kinds)


def test_every_error_has_a_next_step_of_its_own() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FerryError)]
    assert [kind.__name__ for kind in kinds if "next_step" not in vars(kind)] == []
    assert len({kind.next_step for kind in kinds}) == len(kinds)


def test_the_name_of_an_error_leads_to_its_class() -> None:
    assert error_named("SourceRecreated") is errors.SourceRecreated
    assert error_named("ExitCode") is error_named("no such name") is errors.PartitionsFailed
