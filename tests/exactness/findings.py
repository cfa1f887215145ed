"""What the ending of a course shows: verdicts by kind of position and replicator, and whatever Ferry has done wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.exactness.course import Ending, Place
from tests.exactness.following import Reader
from tests.exactness.judging import Tally, judge
from tests.exactness.places import KINDS, Group
from tests.translation.histories import Content

from ferry.sandbox import RecordSeen, SandboxCluster

FERRY, MM2 = "Ferry", "MM2"


@dataclass
class Findings:
    """`tallies` by kind and replicator. `problems`: each is a failure."""

    tallies: dict[str, dict[str, Tally]] = field(
        default_factory=lambda: {kind.label: {FERRY: Tally(told=0), MM2: Tally()} for kind in KINDS}
    )
    problems: list[str] = field(default_factory=list)
    started: int = 0


def remote(group: Group) -> Place:
    """Where the group's partition is copied to."""
    return f"A.{group.place.topic}", group.place.partition


def images(ending: Ending) -> dict[str, dict[str, int | None]]:
    """By replicator and group the translated offset; None where there is none."""
    ferry = {name: None if translation is None else translation.image for name, translation in ending.ferry.items()}
    return {FERRY: ferry, MM2: {group.name: ending.mm2.get((group.name, *remote(group))) for group in ending.groups}}


def find(ending: Ending) -> Findings:
    """Judge every position by what was read of both targets from beginning to end."""
    found = Findings()
    translated = images(ending)
    for group in ending.groups:
        for name, copies in ((FERRY, ending.ferry_copies), (MM2, ending.mm2_copies)):
            _count(found.tallies[group.kind][name], ending.wanted[group.name], copies[remote(group)], translated[name][group.name])
        _check(found, group, ending)
    return found


def _count(tally: Tally, wanted: Sequence[Content], copies: Sequence[RecordSeen], image: int | None) -> None:
    if image is None:
        earliest = judge(wanted, [record.content for record in copies])
        tally.untranslated.append((earliest, judge(wanted, [])))
    else:
        tally.verdicts.append(judge(wanted, [record.content for record in copies if record.offset >= image]))


def _check(found: Findings, group: Group, ending: Ending) -> None:
    """Ferry may be inexact where it says so, and may never skip."""
    translation = ending.ferry[group.name]
    where = f"{group.name} at {group.place.topic}-{group.place.partition}:{group.offset} ({group.kind}, {group.moment.value})"
    if translation is None:
        found.problems.append(f"{where}: not translated")
        return
    tally = found.tallies[group.kind][FERRY]
    verdict = tally.verdicts[-1]
    tally.told = (tally.told or 0) + (not translation.exact)
    if verdict.skipped or (translation.exact and not verdict.exact):
        found.problems.append(f"{where}: {translation}, but {verdict}")


def start_consumers(
    found: Findings, ending: Ending, source: SandboxCluster, targets: dict[str, SandboxCluster], chance: random.Random, count: int
) -> None:
    """At `count` positions of each replicator, and at as many of the source, start a real consumer: it reads what was judged."""
    translated = images(ending)
    copies = {FERRY: ending.ferry_copies, MM2: ending.mm2_copies}
    for name, cluster in targets.items():
        reader = Reader(cluster, "read_committed")
        for group in chance.sample([group for group in ending.groups if translated[name][group.name] is not None], count):
            image = translated[name][group.name] or 0
            read = [value for _, _, value in reader.read(remote(group), image)]
            if read != [record.value for record in copies[name][remote(group)] if record.offset >= image]:
                found.problems.append(f"{name}: a consumer of {remote(group)} from {image} reads something else than was judged")
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
