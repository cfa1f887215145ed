"""What the user of a simulated cluster may not do: each entry is an ACL that denies one operation on one resource (AclAuthorizer).

Everything else is allowed. So a right that another one implies, as Read implies Describe, must be denied by itself.
"""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """The codes of AclOperation."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


class Kind(IntEnum):
    """The codes of ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


THE_CLUSTER = "kafka-cluster"


class Rights:
    """Which operations are denied."""

    def __init__(self) -> None:
        self._denied: set[tuple[Operation, Kind, str]] = set()

    def deny(self, operation: Operation, kind: Kind, name: str = THE_CLUSTER) -> None:
        self._denied.add((operation, kind, name))

    def allow(self, operation: Operation, kind: Kind, name: str = THE_CLUSTER) -> None:
        """Take a denial back."""
        self._denied.discard((operation, kind, name))

    def may(self, operation: Operation, kind: Kind, name: str = THE_CLUSTER) -> bool:
        return not self._denied or (operation, kind, name) not in self._denied

    def of(self, operations: frozenset[int], kind: Kind, name: str = THE_CLUSTER) -> set[int]:
        """Those of `operations` that are allowed."""
        return {one for one in operations if (one, kind, name) not in self._denied}
