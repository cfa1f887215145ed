"""Reads a Java expression character by character. As in java.util.regex.Pattern, `\\Q…\\E` is resolved first."""

from dataclasses import dataclass


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
        tokens = self._tokens[self.position + ahead : self.position + ahead + len(text)]
        return len(tokens) == len(text) and all(token == Token(character) for token, character in zip(tokens, text, strict=True))

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
    tokens: list[Token] = []
    position, quoting = 0, False
    while position < len(expression):
        pair = expression[position : position + 2]
        if quoting and pair == r"\E":
            quoting, position = False, position + 2
        elif quoting:
            tokens.append(Token(expression[position], quoted=True))
            position += 1
        elif pair == r"\Q":
            quoting, position = True, position + 2
        else:
            # A backslash takes the next character with it: \\Q is no quotation.
            width = len(pair) if pair[0] == "\\" else 1
            tokens += [Token(character) for character in expression[position : position + width]]
            position += width
    return tokens
