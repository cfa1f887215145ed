"""What the ending of a course shows: verdicts by kind of position and replicator, and whatever Ferry has done wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from confluent_kafka import KafkaException
from tests.drills.exactness.course import Ending, Place
from tests.drills.exactness.following import Reader
from tests.drills.exactness.judging import Tally, judge
from tests.drills.exactness.places import KINDS, Group
from tests.drills.exactness.replicators import FERRY, MM2, Positions
from tests.translation.histories import Content
from tools.kafka import RecordSeen, SandboxCluster

from ferry.translation.translated import Inexact, Translation

# Topics whose records have left the source's log.
EXPIRED = frozenset({"gone", "expired", "lossy"})


@dataclass
class Findings:
    """`tallies` by kind and replicator. `reasons`: why Ferry calls positions inexact. `exact_later`: how many are exact after its
    last run. `started`: consumers. `problems`: each is a failure.
    """

    tallies: dict[str, dict[str, Tally]] = field(
        default_factory=lambda: {kind.label: {FERRY: Tally(told=0), MM2: Tally()} for kind in KINDS}
    )
    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    exact_later: int = 0
    started: int = 0


def remote(group: Group) -> Place:
    """Where the group's partition is copied to."""
    return f"A.{group.place.topic}", group.place.partition


def image(checkpoints: Positions, group: Group) -> int | None:
    """The offset that stands in a checkpoints topic; None when there is none."""
    return checkpoints.get((group.name, *remote(group)))


def find(ending: Ending) -> Findings:
    """Judge every position by what was read of both targets from beginning to end."""
    found = Findings()
    for group in ending.groups:
        tallies = found.tallies[group.kind]
        for name in (FERRY, MM2):
            _count(tallies[name], ending.wanted[group.name], ending.copies[name][remote(group)], image(ending.checkpoints[name], group))
        translation = ending.translations[group.name]
        if translation is not None and translation.reason is not None:
            found.reasons[translation.reason.value] += 1
            tallies[FERRY].told = (tallies[FERRY].told or 0) + 1
        _check(found, ending, group, translation, image(ending.checkpoints[FERRY], group))
        later = ending.later_translations[group.name]
        found.exact_later += _check(found, ending, group, later, image(ending.later_checkpoints, group))
        if later is not None and later.reason is Inexact.AHEAD:
            found.problems.append(f"{group.name}: still ahead after the last run")
    return found


def _count(tally: Tally, wanted: Sequence[Content], copies: Sequence[RecordSeen], start: int | None) -> None:
    if start is None:
        earliest = judge(wanted, [record.content for record in copies])
        tally.untranslated.append((earliest, judge(wanted, [])))
    else:
        tally.verdicts.append(judge(wanted, [record.content for record in copies if record.offset >= start]))


def _check(found: Findings, ending: Ending, group: Group, translation: Translation | None, checkpoint: int | None) -> bool:
    """Whether the position is exact. Ferry may be inexact where it says so; it may never skip nor leave the log, and its checkpoint is its
    translation."""
    place = remote(group)
    where = f"{group.name} at {group.place.topic}-{group.place.partition}:{group.offset} ({group.kind}, {group.moment.value})"
    if translation is None or checkpoint is None:
        found.problems.append(f"{where}: {translation}, checkpoint {checkpoint}")
        return False
    verdict = judge(ending.wanted[group.name], [record.content for record in ending.copies[FERRY][place] if record.offset >= checkpoint])
    wrong = verdict.skipped or (translation.exact and not verdict.exact)
    if checkpoint != translation.image or wrong or checkpoint > ending.ends[place]:
        found.problems.append(f"{where}: {translation}, checkpoint {checkpoint} of a log that ends at {ending.ends[place]}: {verdict}")
    return verdict.exact


def start_consumers(
    found: Findings, ending: Ending, source: SandboxCluster, targets: dict[str, SandboxCluster], chance: random.Random, count: int
) -> None:
    """At `count` positions of each replicator, and at as many of the source, start a real consumer: it reads what was judged."""
    for name, cluster in targets.items():
        placed = [(group, start) for group in ending.groups if (start := image(ending.checkpoints[name], group)) is not None]
        with closing(Reader(cluster, "read_committed")) as reader:
            for group, start in chance.sample(placed, min(count, len(placed))):
                judged = [record.value for record in ending.copies[name][remote(group)] if record.offset >= start]
                _compare(found, reader, remote(group), start, judged)
    kept = [group for group in ending.groups if group.place.topic not in EXPIRED]
    with closing(Reader(source, "read_committed")) as reader:
        for group in chance.sample(kept, min(count, len(kept))):
            place = (group.place.topic, group.place.partition)
            _compare(found, reader, place, group.offset, [content[1] for content in ending.wanted[group.name]])


def _compare(found: Findings, reader: Reader, place: Place, start: int, judged: list[object]) -> None:
    found.started += 1
    try:
        read = [value for _, _, value in reader.read(place, start)]
    except KafkaException as problem:
        found.problems.append(f"a consumer of {place} from {start}: {problem}")
        return
    if read != judged:
        found.problems.append(f"a consumer of {place} from {start} reads something else than was judged")
