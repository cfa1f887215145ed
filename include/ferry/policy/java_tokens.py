"""Reads a Java expression character by character. As in java.util.regex.Pattern, `\\Q…\\E` is resolved first."""

import re
from dataclasses import dataclass

# A backslash takes the next character with it: \\Q is no quotation.
_QUOTATION_OR_ONE = re.compile(r"\\Q(.*?)(?:\\E|\Z)|(\\?.)", re.DOTALL)


class UnsupportedExpression(Exception):
    """Java refuses the expression, or Python would match it differently; the text completes "it uses …"."""


@dataclass(frozen=True, slots=True)
class Token:
    """One character. `quoted`: it was between `\\Q` and `\\E`, so it has no special meaning."""

    character: str
    quoted: bool = False


class Tokens:
    def __init__(self, expression: str) -> None:
        self._tokens = _unquoted(expression)
        self.position = 0

    @property
    def ended(self) -> bool:
        return self.position >= len(self._tokens)

    def sees(self, text: str, ahead: int = 0) -> bool:
        """Whether `text`, not quoted, comes next (or `ahead` tokens later)."""
        start = self.position + ahead
        return self._tokens[start : start + len(text)] == [Token(character) for character in text]

    def take(self, text: str) -> bool:
        """Read `text` if it comes next."""
        found = self.sees(text)
        self.position += len(text) if found else 0
        return found

    def read(self) -> Token:
        """The next token; UnsupportedExpression at the end."""
        if self.ended:
            raise UnsupportedExpression("something that is not closed")
        self.position += 1
        return self._tokens[self.position - 1]

    def syntax(self) -> str:
        """The next character, as part of a construct; UnsupportedExpression when it is quoted."""
        token = self.read()
        if token.quoted:
            raise UnsupportedExpression(r"\Q inside another construct")
        return token.character

    def until(self, end: str) -> str:
        """The text up to `end`, which is read too."""
        text = ""
        while (character := self.syntax()) != end:
            text += character
        return text

    def digits(self, allowed: str, most: int) -> str:
        """Up to `most` characters of `allowed`."""
        text = ""
        while len(text) < most and any(self.sees(digit) for digit in allowed):
            text += self.syntax()
        return text


def _unquoted(expression: str) -> list[Token]:
    parts = ((found[1] is not None, found[1] or found[2] or "") for found in _QUOTATION_OR_ONE.finditer(expression))
    return [Token(character, quoted) for quoted, text in parts for character in text]
