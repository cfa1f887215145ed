"""What reads the copies, as processes of a world: `ferry verify`, and the translation of a group's offsets, with Ferry's own readers.

What they say must agree with the oracles.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.oracles import Copy, committed, log_of, receipts, sides_of, wanted
from tests.simulation.state import GROUPS

from ferry import clock
from ferry.config import Flow
from ferry.errors import FerryError
from ferry.ledger.open_flow import open_flow
from ferry.syncs.translated_groups import TranslatedGroups, translated_groups
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest
from ferry.verify.verify_report import VerifyReport
from ferry.verify.verifying import verify

# A group of the source, which has read each partition up to a random offset.
GROUP = "readers"
# A verify opens whole batches. The small memory of some scenarios is not enough for it.
MEMORY_BYTES = 64 << 20


def verified(flow: Flow) -> VerifyReport:
    """The report of a verify, which takes over no results of another one."""
    with open_flow(replace(flow, memory_bytes=MEMORY_BYTES)) as opened:
        return verify(opened, VerifyRequest(flow.name, f"verify-{clock.token_hex(4)}"), verify_inline, lambda _: None)


def translated(flow: Flow) -> TranslatedGroups:
    """Where the groups of the source stand on the target."""
    with open_flow(flow) as opened:
        return translated_groups(opened)


def let_read(copy: Copy, seed: int) -> None:
    """Give the group an offset in each partition."""
    chance, store = Random(seed), copy.source.groups
    copy.source.state.coordinator(GROUPS, GROUP)  # which makes the groups' topic
    for source, _ in copy.partitions():
        log = log_of(source)
        offset = chance.randrange(log.start, log.end + 1)
        store.get(GROUP).offsets[source.key] = store.stored(offset, -1, "")


def misplaced(copy: Copy, found: TranslatedGroups) -> list[str]:
    """What is wrong with the translated offsets of the group."""
    known = receipts(copy)
    places = {(one.topic, one.partition): one for one in found.positions if one.group == GROUP}
    problems = []
    for source, target in copy.partitions():
        one = places[source.key]
        if one.translation is None or one.upstream_offset is None:
            problems.append(f"group {GROUP} has no offset of {source.topic}-{source.index}: {one.problem}")
        else:
            sides, _, _ = sides_of(copy, source, target, known, wanted(copy, source, known))
            problems.append(sides.forward(one.upstream_offset, one.translation))
    return [f"group {GROUP}: {problem}" for problem in problems if problem]


def unequal(copy: Copy, report: VerifyReport) -> list[str]:
    """What a verify says that the oracles do not say: they have found that both sides agree, and compare no records here.

    Without transactions some records may be on the target twice, and a verify says so.
    """
    problems: list[FerryError] = report.problems()
    known, both = receipts(copy), 0
    for source, target in copy.partitions():
        there = {one.value for one in committed(target) if one.offset >= log_of(target).start}
        both += sum(one.value in there for one in wanted(copy, source, known) if one.offset >= log_of(source).start)
    if copy.flow.exactly_once and (problems or report.records != both):
        return [f"a verify compares {report.records} records of {both}{''.join(f', and says: {problem}' for problem in problems)}"]
    return []


def unseen(what: str, _: Copy, report: VerifyReport) -> list[str]:
    """A verify must see that one record is another one."""
    return [] if report.differences_total else [f"a verify does not see {what}"]
