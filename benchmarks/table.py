"""Results as markdown, and the place in the docs where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.results import FERRY, FERRY_BESIDE, FERRY_FOLLOWS, MM2_DEFAULTS, MM2_TUNED, ShapeResult
from benchmarks.targets import Target

TITLES = {
    FERRY: "Ferry",
    FERRY_BESIDE: "Ferry, other checkout",
    FERRY_FOLLOWS: "Ferry, following",
    MM2_TUNED: "MM2 tuned",
    MM2_DEFAULTS: "MM2 defaults",
}
HEAD = (
    "shape",
    "MB",
    "copier",
    "records/s while copying",
    "Ferry is",
    "start to caught up, s",
    "CPU s per GB",
    "of produce-only limit",
    "peak MiB",
)


def caption(content: dict[str, Any]) -> str:
    """When and where a run was made, from its JSON."""
    machine = content["machine"]
    rounds = 1 if content["options"]["quick"] else content["options"]["rounds"]
    place = f"{machine['cores']} cores and {machine['memory_gib']} GiB, load {machine['load_before']} before"
    return f"{content['at'][:10]}, {rounds} round{'s' if rounds > 1 else ''}, {place}."


def markdown(results: Iterable[ShapeResult]) -> str:
    """One row per shape and copier: medians over the rounds."""
    rows = [HEAD, tuple("---" for _ in HEAD)]
    for result in results:
        rows += [_row(result, copier) for copier in TITLES if copier in result.samples]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def targets_markdown(targets: Iterable[Target]) -> str:
    """One row per expectation."""
    rows = [("shape", "what", "found", "expected", ""), ("---",) * 5]
    for target in targets:
        wanted = f"{'≤' if target.at_most else '≥'} {target.wanted:g}"
        rows.append((target.shape, target.what, f"{target.found:.2f}", wanted, "met" if target.met else "**missed**"))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def put_between_markers(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name:begin -->` and `<!-- name:end -->`. ValueError when the markers are not there."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text()
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{path} lacks the markers {begin} and {end}")
    path.write_text(f"{before}{begin}\n{text}{end}{after}")


def _row(result: ShapeResult, copier: str) -> tuple[str, ...]:
    faster = None if copier == FERRY else result.times_faster(copier)
    return (
        result.shape.title if copier == FERRY else "",
        f"{result.shape.megabytes:,.0f}" if copier == FERRY else "",
        TITLES[copier],
        _number(result.median(copier, "records_per_second"), ",.0f"),
        _number(faster, ".1f", "x"),
        _number(result.median(copier, "caught_up_seconds"), ".1f"),
        _number(result.cpu_per_gigabyte(copier), ".1f"),
        _number(result.limit_share(copier), ".2f"),
        _number(result.median(copier, "peak_mib"), ",.0f"),
    )


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"
