"""Questions at the terminal: what an option gave is taken, what is missing is asked for, what is wrong is told and asked for again.

Questions and reasons go to stderr. With `no_input` nothing is asked: the default counts, and what is wrong or missing ends the command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from ferry.cli.output import notice
from ferry.errors import ArgumentError

Check = Callable[[str], str]


def anything(text: str) -> str:
    """Takes every answer that is not empty."""
    if not text:
        raise ValueError("an answer is needed")
    return text


def one_of(choices: Collection[str]) -> Check:
    """Takes one of `choices`, in upper or lower case."""

    def check(text: str) -> str:
        found = next((choice for choice in choices if choice.casefold() == text.casefold()), None)
        if found is None:
            raise ValueError(f"{text or 'nothing'} is none of {', '.join(choices)}")
        return found

    return check


@contextmanager
def _answered(option: str) -> Iterator[None]:
    """ArgumentError where nobody answers; KeyboardInterrupt, as everywhere, for Ctrl-C at a question."""
    try:
        yield
    except typer.Abort as problem:
        # Click makes one of both.
        if isinstance(problem.__context__, EOFError):
            notice("")
            raise ArgumentError(f"nobody answers: give {option}, or --no-input to be asked nothing") from problem
        raise KeyboardInterrupt from problem


@dataclass
class Asker:
    """Asks, or not. A given answer counts once: when it turns out wrong later, its question is asked."""

    no_input: bool

    def ask(self, question: str, option: str, given: str | None, default: str | None = None, check: Check = anything) -> str:
        """An answer that `check` takes (it raises ValueError with the reason). ArgumentError naming `option` when nobody may be asked."""
        answer = given
        while True:
            if answer is None:
                answer = self._typed(question, option, default)
            try:
                return check(answer.strip())
            except ValueError as problem:
                if self.no_input:
                    raise ArgumentError(f"{option}: {problem}") from problem
                notice(f"  {problem}")
                answer = None

    def secret(self, question: str, option: str, check: Check = anything) -> str:
        """A password that `check` takes, typed unseen. Neither it nor a part of it is shown."""
        while True:
            with _answered(option):
                answer = str(typer.prompt(question, hide_input=True, err=True))
            try:
                return check(answer)
            except ValueError as problem:
                notice(f"  {problem}")

    def agree(self, question: str, option: str, *, default: bool) -> bool:
        """Yes or no; `option` does without the question."""
        with _answered(option):
            return typer.confirm(question, default=default, err=True)

    def _typed(self, question: str, option: str, default: str | None) -> str:
        if not self.no_input:
            with _answered(option):
                return str(typer.prompt(question, default=default, err=True))
        if default is None:
            raise ArgumentError(f"{option} is needed with --no-input")
        return default
