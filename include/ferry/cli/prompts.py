"""Questions at the terminal. An option answers its question; a missing answer is asked for; a wrong answer is asked for again.

Questions and reasons go to stderr. With `no_input` Ferry asks nothing: it takes the defaults, and a missing or wrong answer is an error.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from ferry.cli.output import notice
from ferry.errors import ArgumentError

Check = Callable[[str], str]


def anything(text: str) -> str:
    """Accepts every answer that is not empty."""
    if not text:
        raise ValueError("an answer is needed")
    return text


def one_of(choices: Collection[str]) -> Check:
    """Accepts one of `choices`, in upper or lower case."""

    def check(text: str) -> str:
        found = next((choice for choice in choices if choice.casefold() == text.casefold()), None)
        if found is None:
            raise ValueError(f"{text or 'nothing'} is none of {', '.join(choices)}")
        return found

    return check


@contextmanager
def _answered(option: str) -> Iterator[None]:
    """ArgumentError when stdin ends; KeyboardInterrupt for Ctrl-C at a question."""
    try:
        yield
    except typer.Abort as problem:
        # Click raises Abort for both.
        if isinstance(problem.__context__, EOFError):
            notice("")
            raise ArgumentError(f"the input ended without an answer: give {option}, or --no-input for the defaults") from problem
        raise KeyboardInterrupt from problem


@dataclass
class Asker:
    no_input: bool

    def ask(
        self, question: str, option: str, given: str | None, default: str | None = None, check: Check = anything, *, secret: bool = False
    ) -> str:
        """An answer for which `check` raises no ValueError (with a reason). With `no_input`: ArgumentError that names `option`.

        `secret`: it is typed without echo and taken as it was typed, and no part of it is shown.
        """
        answer = given
        while True:
            if answer is None:
                answer = self._typed(question, option, default, secret=secret)
            try:
                return check(answer if secret else answer.strip())
            except ValueError as problem:
                if self.no_input:
                    raise ArgumentError(f"{option}: {problem}") from problem
                notice(f"  {problem}")
                answer = None

    def agree(self, question: str, option: str, *, default: bool) -> bool:
        """Yes or no. `option`: what avoids the question."""
        with _answered(option):
            return typer.confirm(question, default=default, err=True)

    def _typed(self, question: str, option: str, default: str | None, *, secret: bool) -> str:
        if not self.no_input:
            with _answered(option):
                return str(typer.prompt(question, default=default, hide_input=secret, err=True))
        if default is None:
            raise ArgumentError(f"{option} is needed with --no-input")
        return default
