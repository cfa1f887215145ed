"""Where every consumer group of one side stands on the other: one bulk pass, as checkpoints, group sync and `ferry translate` need it.

The order of reading makes the result safe: group offsets first, then the last stable offsets of the partitions that are translated into,
then the ledger completely, then where those logs begin. What the ledger does not explain was not there when the group's offset was read.
Reads only. Nothing is left out without a reason.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.translation.model import TranslatedPosition

if TYPE_CHECKING:
    from ferry.config import Flow


@dataclass(frozen=True, slots=True)
class GroupLeftOut:
    """A group without positions. `error` is a class name of ferry.errors when reading it failed, empty when it is left out on purpose."""

    group: str
    reason: str
    error: str = ""


@dataclass(frozen=True)
class TranslatedGroups:
    """The groups of one cluster with their positions on the other, in order of group, topic and partition.

    `groups` were translated, also those that have no offsets. `reverse`: they are the target's groups, translated to the source.
    """

    flow: str
    reverse: bool
    groups: tuple[str, ...]
    positions: tuple[TranslatedPosition, ...]
    left_out: tuple[GroupLeftOut, ...]


def translated_groups(flow: Flow, groups: Collection[str] | None = None, *, reverse: bool = False) -> TranslatedGroups:
    """Positions of all groups that the group filter accepts, or of those named in `groups`, whatever the filter says of them.

    With `reverse` the groups of the target, on the source. ArgumentError for names of groups that do not exist; ClusterUnreachable and its
    kin when a cluster or the ledger cannot be read.
    """
    raise NotImplementedError
