"""The findings as a page: one section for each seed, the newest run of a seed replaces the older one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.drills.exactness.findings import Findings
from tests.drills.exactness.judging import Tally, total
from tests.drills.exactness.places import RECENT
from tests.drills.exactness.replicators import FERRY, MM2, QUIET_SECONDS, SHOWN

HEAD = """\
# Translated offsets, compared with MirrorMaker 2's

`make exactness SEED=n` writes a section of this page; the whole run takes a few minutes on two cores. There is one source. MirrorMaker 2
(MM2) copies it to one target, and Ferry copies it to another. Each group commits once, at a random position, while producers still write.
At the end, the test reads on each target from each translated offset, and compares this with what the group would have read next at the
source.

- **exact**: the same records in the same order. **read again**: records that the group had read before, or that it gets twice.
  **skipped**: records that it would have read next and never gets.
- **told inexact**: positions that Ferry itself calls inexact (`exact` is false in `ferry translate`). MM2's checkpoints do not say this.
- **untranslated**: there is no checkpoint, so the consumer starts where `auto.offset.reset` says. The text below the table says what it
  then reads; the table does not count it.
- librdkafka reads both targets and the source with `read_committed`. The offsets are the newest records of each replicator's
  checkpoints topic, read as `MirrorClient` reads them: MM2's when none was written for {quiet:.0f} s, Ferry's before its last run.
- Ferry runs four times, and does one backfill. So a group can have read records that Ferry had not copied yet; after the last run these
  translations are exact. MM2 copies all the time. The test stops it (SIGTERM) and starts it again once.
- Two tests with the same seed have the same kinds of positions at the same moments. MM2's results depend on its timing, so its numbers
  differ a little from test to test.
- Old data is the older half of a log, recent data its last {recent} offsets, the end of the log its end, all at the moment of the commit.
- MM2 has no backfill: it has copied the topic with the backfill from its beginning, like any other topic. Records that MM2 had copied
  before its restart are also old data at the end. So the row about the restart shows both effects together.

MM2 runs in its dedicated mode with `-Xmx1g`. It has these settings, and in addition addresses, topics and replication factors of 1. All
other settings have their defaults (`offset.lag.max` is 100):

```properties
{settings}
```
"""
COLUMNS = (
    "position",
    "by",
    "positions",
    "exact",
    "read again: sum",
    "median",
    "max",
    "skipped",
    "told inexact",
    "untranslated",
)
SECTION = re.compile(r"^## Seed (\d+)$", re.MULTILINE)


def table(found: Findings) -> list[str]:
    """As lines of Markdown."""
    lines = [_row(COLUMNS), _row("---" if number < 2 else "---:" for number in range(len(COLUMNS)))]
    for kind, tallies in found.tallies.items():
        lines += [_cells(kind, FERRY, tallies[FERRY]), _cells("", MM2, tallies[MM2])]
    for name in (FERRY, MM2):
        lines.append(_cells("**all**" if name == FERRY else "", name, total(tallies[name] for tallies in found.tallies.values())))
    return lines


def notes(found: Findings) -> list[str]:
    """What the table does not hold."""
    lines = []
    if found.reasons:
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(found.reasons.items()))
        lines.append(f"Why Ferry calls positions inexact: {reasons}.")
    lines.append(f"After Ferry's last run {found.exact_later} positions are exact.")
    for name in (FERRY, MM2):
        every = total(tallies[name] for tallies in found.tallies.values())
        if every.untranslated:
            again, skipped = every.reset
            count = len(every.untranslated)
            lines.append(
                f"{name}'s {count} untranslated positions: with `auto.offset.reset=earliest` their consumers read {again:,} records again, "
                f"with `latest` they skip {skipped:,}."
            )
    lines.append(f"{found.started} of the readings were made by consumers started at the position; they read what was judged.")
    if found.problems:
        lines += ["", *(f"- PROBLEM {problem}" for problem in found.problems)]
    return lines


def write_section(path: Path, seed: int, lines: Iterable[str]) -> None:
    """Put the section of this seed into the page."""
    settings = "\n".join(f"{key} = {value}" for key, value in SHOWN.items())
    head = HEAD.format(quiet=QUIET_SECONDS, recent=RECENT, settings=settings)
    pieces = SECTION.split(path.read_text(encoding="utf-8")) if path.exists() else [""]
    sections = {int(number): text.strip() for number, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    sections[seed] = "\n".join(lines).strip()
    text = "\n".join(f"\n## Seed {number}\n\n{sections[number]}\n" for number in sorted(sections)).replace("\n\n\n", "\n\n")
    path.write_text(head + text, encoding="utf-8")


def _cells(kind: str, name: str, tally: Tally) -> str:
    told = "" if tally.told is None else str(tally.told)
    again = [f"{count:,}" for count in tally.read_again]
    return _row([kind, name, str(tally.positions), str(tally.exact), *again, f"{tally.skipped:,}", told, str(len(tally.untranslated))])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
