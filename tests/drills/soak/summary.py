"""A soak as a page of Markdown, to be kept. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.drills.histories.model import Outcome
from tests.drills.soak.report import Log


@dataclass(frozen=True)
class Figures:
    """What is counted elsewhere. `made`: date and versions; `inside`: strikes inside an open transaction of Ferry's."""

    minutes: float
    follow: bool
    made: str
    sent: int
    transactions: Mapping[Outcome, int]
    inside: int
    settled: tuple[int, int]
    orphans: int


def page(log: Log, figures: Figures) -> str:
    """The whole page."""
    ends = figures.transactions
    verdict = "No record was lost, duplicated, reordered or altered." if not log.problems else f"{len(log.problems)} problems, below."
    ended = f"{ends[Outcome.OK]:,} committed, {ends[Outcome.FAILED]:,} aborted, {ends[Outcome.UNKNOWN]:,} of unknown outcome"
    settled = f"{figures.settled[0]} at the source, {figures.settled[1]} at the target"
    title = f"# A soak of {figures.minutes:.0f} minutes" + (" with runs that follow" if figures.follow else "")
    command = f"make soak MINUTES={figures.minutes:g} SEED={log.seed}" + (" FOLLOW=--follow" if figures.follow else "")
    lines = [
        f"{title}, seed {log.seed}",
        "",
        f"`{command}`, {figures.made}. {log.seconds / 60:.0f} minutes with start and verdict.",
        "",
        f"**{verdict}**",
        "",
        f"- Source: {figures.sent:,} records sent; transactions: {ended}.",
        f"- {sum(log.faults.values())} faults, {figures.inside} of them during an open transaction of Ferry's.",
        f"- Hanging transactions that a killed broker forgot, and that the test ended as an operator would: {settled}.",
        f"- Processes whose parent was killed and that still ran at the end: {figures.orphans}.",
        "",
        *_table(("verdict", ""), sorted(log.checks.items())),
        "",
        *_table(("fault", "times"), _counts(log.faults)),
        "",
        *_table(("what users and schedulers did", "times"), _counts(log.events)),
        "",
        *_table(("runs", "exit code (times)"), [(kind, _codes(codes)) for kind, codes in sorted(log.exits.items())]),
    ]
    if log.problems:
        lines += ["", "## Problems", "", *(f"- {problem}" for problem in log.problems)]
    return "\n".join(lines) + "\n"


def _counts(counted: Counter[str]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in sorted(counted.items())]


def _codes(codes: Counter[int]) -> str:
    return ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {first} | {second} |" for first, second in rows)]
