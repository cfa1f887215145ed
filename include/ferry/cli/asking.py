"""Questions at the terminal: what an option gave is taken, what is missing is asked for, what is wrong is told and asked for again.

Questions and reasons go to stderr. With `no_input` nothing is asked: the default counts, and what is wrong or missing ends the command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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

    def secret(self, question: str) -> str:
        """A password, typed unseen."""
        return str(typer.prompt(question, hide_input=True, err=True))

    def agree(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        return typer.confirm(question, default=default, err=True)

    def _typed(self, question: str, option: str, default: str | None) -> str:
        if not self.no_input:
            return str(typer.prompt(question, default=default, err=True))
        if default is None:
            raise ArgumentError(f"{option} is needed with --no-input")
        return default
