"""A text that logs and messages do not show.

Values of client properties are secrets from the file to the client, also in pickles and Spark task closures. Only `reveal` gives the text,
so a search for that word finds every place that uses a secret in plain text.
"""

from typing import Any

HIDDEN = "[hidden]"


class Secret:
    """An immutable text that prints as `[hidden]`. Equal secrets hold the same text; it can be pickled and hashed.

    It is not a dataclass, so `dataclasses.asdict` of an object with a secret keeps it hidden.
    """

    __slots__ = ("_text",)
    _text: str

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "_text", text)

    def reveal(self) -> str:
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
