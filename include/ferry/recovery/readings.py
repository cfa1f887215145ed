"""Where the groups stand that a failover or failback moves, and what is known about both clusters. Reads only.

A source that does not answer within its first contact is away: a failover then goes by what the target holds. Anything else that is wrong
with it, a refused login above all, is an error, for it would be wrong to lose exactness over a password.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.errors import ArgumentError, AuthenticationFailed, ClusterUnreachable, NotAuthorized
from ferry.ledger.run_report import Skipped
from ferry.policy.naming import is_ferry_group
from ferry.recovery.checkpointed_groups import checkpointed_groups
from ferry.syncs.group_offsets import Positions
from ferry.syncs.translated_groups import TranslatedGroups, translated_groups
from ferry.translation.model import TranslatedPosition

if TYPE_CHECKING:
    from ferry.config import Cluster, Flow


@dataclass(frozen=True)
class GroupReading:
    """Positions by group, groups that are left out and why, groups that could not be read, and what the positions go by.

    `checkpoints_as_of` (ms): set when they go by checkpoints, 0 where nobody knows when those were brought up to date.
    """

    positions: Positions
    left_out: tuple[Skipped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    checkpoints_as_of: int | None = None
    notices: tuple[str, ...] = ()

    def without(self, groups: frozenset[str]) -> GroupReading:
        """The same without groups that are done."""
        done = tuple(Skipped(f"group {group}", "moved already: it goes on by itself") for group in sorted(groups & set(self.positions)))
        positions = {group: found for group, found in self.positions.items() if group not in groups}
        return replace(self, positions=positions, left_out=(*self.left_out, *done))

    @property
    def told_unread(self) -> tuple[str, ...]:
        """Groups that could not be read, in words."""
        return tuple(f"{entry.what}: {entry.reason}" for entry in self.unread)


def cluster_id_of(cluster: Cluster) -> str:
    """The cluster's id. ClusterUnreachable within ten seconds."""
    with ClusterAdmin(cluster) as admin:
        return admin.cluster_id()


def is_away(cluster: Cluster) -> str:
    """Why the cluster does not answer; empty when it does. AuthenticationFailed and NotAuthorized are raised."""
    try:
        cluster_id_of(cluster)
    except (AuthenticationFailed, NotAuthorized):
        raise
    except ClusterUnreachable as problem:
        return str(problem)
    return ""


def read_groups(flow: Flow, *, away: bool, back: bool = False, only: str | None = None) -> GroupReading:
    """Positions of all groups of the filter on the other side; with `back` those of the target's groups on the source.

    `away`: the source does not answer, the newest checkpoints count. `only`: groups whose whole name the expression matches.
    """
    if away:
        known = checkpointed_groups(flow)
        return narrowed(known.translated, only, known.as_of or 0, known.notices)
    return narrowed(translated_groups(flow, reverse=back), only, None, ())


def narrowed(found: TranslatedGroups, only: str | None, as_of: int | None, notices: tuple[str, ...]) -> GroupReading:
    """Groups whose whole name `only` matches and that have a place on the other side (pure).

    ArgumentError for what is no expression, or matches no group: a name with a typo would end with nothing moved.
    """
    wanted = _expression(only)
    names = [*found.groups, *(entry.group for entry in found.left_out)]
    if only is not None and not any(map(wanted.fullmatch, names)):
        raise ArgumentError(f"--groups {only!r} matches the whole name of none of {len(names)} groups")
    positions = {
        group: list(entries)
        for group, entries in groupby(found.positions, lambda position: position.group)
        if not is_ferry_group(group) and wanted.fullmatch(group)
    }
    named = [entry for entry in found.left_out if wanted.fullmatch(entry.group)]
    left_out = [Skipped(f"group {entry.group}", entry.reason) for entry in named if not entry.error]
    unread = tuple(Skipped(f"group {entry.group}", f"{entry.error}: {entry.reason}") for entry in named if entry.error)
    # A group of other topics would only hide those that matter.
    placed = {group: entries for group, entries in positions.items() if any(map(_counts, entries))}
    left_out += [
        Skipped(f"group {group}", _without_place(positions.get(group, ())))
        for group in found.groups
        if group not in placed and wanted.fullmatch(group) and not is_ferry_group(group)
    ]
    return GroupReading(placed, tuple(left_out), unread, as_of, notices)


def _counts(entry: TranslatedPosition) -> bool:
    return entry.translation is not None or entry.unread


def _without_place(entries: Sequence[TranslatedPosition]) -> str:
    told = f", first of all {entries[0].topic}-{entries[0].partition}: {entries[0].problem}" if entries else ""
    return f"it has no offsets of topics that are copied{told}"


def _expression(only: str | None) -> re.Pattern[str]:
    try:
        return re.compile(".*" if only is None else only, re.DOTALL)
    except re.error as problem:
        raise ArgumentError(f"--groups {only!r} is no regular expression: {problem}") from problem


def told_age(checkpoints_as_of: int | None, now: float) -> tuple[str, ...]:
    """How old positions are that go by checkpoints (as of GroupReading), `now` in seconds: pure. A clock may have been ahead."""
    if checkpoints_as_of is None:
        return ()
    age = now - checkpoints_as_of / 1000
    if not checkpoints_as_of or age < 0:
        return ("positions are those of the newest checkpoints; when those were brought up to date is not known",)
    return (f"positions are those of the checkpoints of {age:,.0f} s ago: what groups read since then, they read again",)
