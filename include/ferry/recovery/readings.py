"""Where the groups are that a failover or failback moves, and whether a cluster answers. Reads only.

A source is unreachable if it does not answer the first request. A failover then uses what the target holds. Any other problem, such as a
refused login, is an error: a wrong password is no reason to use inexact positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ferry.clusters.admin import ClusterAdmin
from ferry.config import Cluster, Flow
from ferry.errors import ArgumentError, AuthenticationFailed, ClusterUnreachable, NotAuthorized
from ferry.ledger.run_report import Skipped
from ferry.policy.naming import is_ferry_group
from ferry.recovery.checkpointed_groups import checkpointed_groups
from ferry.syncs.group_placing import Positions
from ferry.syncs.translated_groups import TranslatedGroups, translated_groups
from ferry.translation.model import TranslatedPosition


@dataclass(frozen=True)
class GroupReading:
    """Positions by group, groups that are left out and why, and groups that could not be read.

    `checkpoints_as_of` (ms): when the checkpoints were last brought up to date, 0 where that is not known; None if the positions are not
    those of checkpoints.
    """

    positions: Positions
    left_out: tuple[Skipped, ...] = ()
    unread: tuple[Skipped, ...] = ()
    checkpoints_as_of: int | None = None
    notices: tuple[str, ...] = ()

    def without(self, groups: frozenset[str]) -> GroupReading:
        """The same without these groups, which are done."""
        done = tuple(Skipped(f"group {group}", "it was moved already") for group in sorted(groups & set(self.positions)))
        positions = {group: found for group, found in self.positions.items() if group not in groups}
        return replace(self, positions=positions, left_out=(*self.left_out, *done))

    @property
    def unread_lines(self) -> tuple[str, ...]:
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
    """Positions of all groups of the filter on the target; with `back`, those of the target's groups on the source.

    `away`: the source does not answer, so the newest checkpoints count. `only`: groups whose whole name the expression matches.
    """
    if away:
        known = checkpointed_groups(flow)
        return narrowed(known.translated, only, known.as_of or 0, known.notices)
    return narrowed(translated_groups(flow, reverse=back), only, None, ())


def narrowed(found: TranslatedGroups, only: str | None, as_of: int | None, notices: tuple[str, ...]) -> GroupReading:
    """Groups whose whole name `only` matches and that have a position on the other cluster (pure).

    ArgumentError for what is no expression, or matches no group: with a wrong name, nothing would be moved.
    """
    wanted = _expression(only)
    names = [*found.groups, *(entry.group for entry in found.left_out)]
    if only is not None and not any(map(wanted.fullmatch, names)):
        raise ArgumentError(f"--groups {only!r} matches the whole name of none of {len(names)} groups")
    positions = {group: entries for group, entries in found.by_group().items() if not is_ferry_group(group) and wanted.fullmatch(group)}
    named = [entry for entry in found.left_out if wanted.fullmatch(entry.group)]
    left_out = [Skipped(f"group {entry.group}", entry.reason) for entry in named if not entry.error]
    unread = tuple(Skipped(f"group {entry.group}", f"{entry.error}: {entry.reason}") for entry in named if entry.error)
    # Groups that only read other topics are left out, so that the table shows those that matter.
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
    told = f"; the first is {entries[0].topic}-{entries[0].partition}: {entries[0].problem}" if entries else ""
    return f"it has no offsets of topics that are copied{told}"


def _expression(only: str | None) -> re.Pattern[str]:
    try:
        return re.compile(".*" if only is None else only, re.DOTALL)
    except re.error as problem:
        raise ArgumentError(f"--groups {only!r} is no regular expression: {problem}") from problem


def age_notices(checkpoints_as_of: int | None, now: float) -> tuple[str, ...]:
    """How old the positions of checkpoints are (pure). `now` in seconds. A negative age, by a clock that was ahead, counts as not known."""
    if checkpoints_as_of is None:
        return ()
    age = now - checkpoints_as_of / 1000
    if not checkpoints_as_of or age < 0:
        return ("positions are those of the newest checkpoints; how old these are is not known",)
    return (f"positions are those of the checkpoints of {age:,.0f} s ago: groups read again what they have read since then",)
