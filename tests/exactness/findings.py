"""What the ending of a course shows: verdicts by kind of position and replicator, and whatever Ferry has done wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.exactness.course import Ending, Place
from tests.exactness.following import Reader
from tests.exactness.judging import Tally, judge
from tests.exactness.places import KINDS, Group
from tests.exactness.replicators import FERRY, MM2
from tests.translation.histories import Content

from ferry.sandbox import RecordSeen, SandboxCluster


@dataclass
class Findings:
    """`tallies` by kind and replicator. `reasons`: why Ferry calls positions inexact. `problems`: each is a failure."""

    tallies: dict[str, dict[str, Tally]] = field(
        default_factory=lambda: {kind.label: {FERRY: Tally(told=0), MM2: Tally()} for kind in KINDS}
    )
    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    started: int = 0


def remote(group: Group) -> Place:
    """Where the group's partition is copied to."""
    return f"A.{group.place.topic}", group.place.partition


def image(ending: Ending, name: str, group: Group) -> int | None:
    """The offset that stands in the replicator's checkpoints topic; None when there is none."""
    return ending.checkpoints[name].get((group.name, *remote(group)))


def find(ending: Ending) -> Findings:
    """Judge every position by what was read of both targets from beginning to end."""
    found = Findings()
    for group in ending.groups:
        for name in (FERRY, MM2):
            copies = ending.copies[name][remote(group)]
            _count(found.tallies[group.kind][name], ending.wanted[group.name], copies, image(ending, name, group))
        _check(found, group, ending)
    return found


def _count(tally: Tally, wanted: Sequence[Content], copies: Sequence[RecordSeen], start: int | None) -> None:
    if start is None:
        earliest = judge(wanted, [record.content for record in copies])
        tally.untranslated.append((earliest, judge(wanted, [])))
    else:
        tally.verdicts.append(judge(wanted, [record.content for record in copies if record.offset >= start]))


def _check(found: Findings, group: Group, ending: Ending) -> None:
    """Ferry may be inexact where it says so, may never skip, and its checkpoint is its translation."""
    translation, checkpoint = ending.translations[group.name], image(ending, FERRY, group)
    where = f"{group.name} at {group.place.topic}-{group.place.partition}:{group.offset} ({group.kind}, {group.moment.value})"
    if translation is None or checkpoint is None:
        found.problems.append(f"{where}: {translation}, checkpoint {checkpoint}")
        return
    tally = found.tallies[group.kind][FERRY]
    verdict = tally.verdicts[-1]
    tally.told = (tally.told or 0) + (not translation.exact)
    if translation.reason is not None:
        found.reasons[translation.reason.value] += 1
    if checkpoint != translation.image or verdict.skipped or (translation.exact and not verdict.exact):
        found.problems.append(f"{where}: {translation}, checkpoint {checkpoint}: {verdict}")


def start_consumers(
    found: Findings, ending: Ending, source: SandboxCluster, targets: dict[str, SandboxCluster], chance: random.Random, count: int
) -> None:
    """At `count` positions of each replicator, and at as many of the source, start a real consumer: it reads what was judged."""
    for name, cluster in targets.items():
        reader = Reader(cluster, "read_committed")
        placed = [(group, start) for group in ending.groups if (start := image(ending, name, group)) is not None]
        for group, start in chance.sample(placed, count):
            read = [value for _, _, value in reader.read(remote(group), start)]
            if read != [record.value for record in ending.copies[name][remote(group)] if record.offset >= start]:
                found.problems.append(f"{name}: a consumer of {remote(group)} from {start} reads something else than was judged")
            found.started += 1
        reader.close()
    reader = Reader(source, "read_committed")
    for group in chance.sample([group for group in ending.groups if group.place.topic not in {"gone", "expired", "lossy"}], count):
        place = (group.place.topic, group.place.partition)
        read = [value for _, _, value in reader.read(place, group.offset)]
        if read != [content[1] for content in ending.wanted[group.name]]:
            found.problems.append(f"a consumer of the source's {place} from {group.offset} reads something else than was judged")
        found.started += 1
    reader.close()
