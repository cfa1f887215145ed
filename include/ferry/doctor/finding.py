"""A finding of `ferry doctor`: one line, with what to do about it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from ferry.errors import ExitCode, worst_exit_code


class Verdict(StrEnum):
    """Failure: runs fail or will fail. Warning: they may fail, or Ferry could not check it."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """`where`: this machine, a cluster or a flow. `fix`: one line; empty if nothing is wrong. `code` counts for failures only."""

    where: str
    check: str
    verdict: Verdict
    found: str
    fix: str = ""
    code: ExitCode = ExitCode.PARTLY_FAILED

    def document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "code"}


def ok(where: str, check: str, found: str) -> Finding:
    return Finding(where, check, Verdict.OK, found)


def warning(where: str, check: str, found: str, fix: str) -> Finding:
    return Finding(where, check, Verdict.WARNING, found, fix)


def failure(where: str, check: str, found: str, fix: str, code: ExitCode = ExitCode.PARTLY_FAILED) -> Finding:
    return Finding(where, check, Verdict.FAILURE, found, fix, code)


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    """The exit code of the failures among these findings."""
    return worst_exit_code(entry.code for entry in findings if entry.verdict is Verdict.FAILURE)
