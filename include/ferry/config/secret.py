"""Values that never print: passwords, keys, JAAS lines."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, repr=False)
class Secret:
    """Holds a text that `str`, `repr` and formatting do not show."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        """The text itself: only to hand it to a client."""
        return self._value

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)


SECRET_ENDINGS = (
    "sasl.jaas.config",
    "password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "secret",
)


def is_secret(key: str) -> bool:
    """Whether the value of a property must not be shown."""
    return key.lower().endswith(SECRET_ENDINGS)
