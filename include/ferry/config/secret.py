"""A text that does not show itself.

Values of client properties travel as secrets from the file to the client: through pickles, into Spark task closures, past logs and error
messages. Only `reveal` gives the text, so a search for that word finds every place where a secret leaves its cover.
"""

from __future__ import annotations

from typing import Any

HIDDEN = "[hidden]"


class Secret:
    """An immutable text that prints as `[hidden]`. Equal secrets hold the same text; it can be pickled and hashed.

    Not a dataclass on purpose: `dataclasses.asdict` of whatever holds a secret keeps it covered.
    """

    __slots__ = ("_text",)
    _text: str

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "_text", text)

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a secret cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a secret cannot be changed")

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, specification: str) -> str:
        return format(HIDDEN, specification)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (self._text,)
