"""`ferry seed --from-file`: an operator says where partitions go on.

A seed receipt, the head and the group offset are written in one lane transaction, after the flow was taken over, so a seed is as safe as a
copy: a run that is under way is superseded, and nothing is half settled.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ferry.copying.driver import CopyDriver
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.pipeline import prepare_remote_topics
from ferry.copying.plan import PartitionFacts
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError
from ferry.reporting.assemble import assemble_report
from ferry.reporting.run_report import RunReport

if TYPE_CHECKING:
    from ferry.config import Flow

COLUMNS = ("topic", "partition", "position")


@dataclass(frozen=True)
class SeedLine:
    """One line of a seed file: the next upstream offset to copy of a source partition."""

    topic: str
    partition: int
    position: int
    line: int


def read_seed_file(path: Path) -> list[SeedLine]:
    """Read a CSV file with the header `topic,partition,position`. ArgumentError naming file and line for anything else."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as problem:
        raise ArgumentError(f"{path}: cannot be read: {problem}") from problem
    if not rows or tuple(cell.strip() for cell in rows[0]) != COLUMNS:
        raise ArgumentError(f"{path}:1: the first line must be {','.join(COLUMNS)}")
    found: dict[tuple[str, int], SeedLine] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        try:
            topic, partition, position = (cell.strip() for cell in row)
            entry = SeedLine(topic, int(partition), int(position), number)
        except ValueError as problem:
            raise ArgumentError(f"{path}:{number}: not topic,partition,position: {','.join(row)}") from problem
        if (entry.topic, entry.partition) in found:
            raise ArgumentError(f"{path}:{number}: {topic}-{partition} stands there twice")
        found[entry.topic, entry.partition] = entry
    if not found:
        raise ArgumentError(f"{path}: names no partition")
    return list(found.values())


def check_seeds(seeds: Iterable[SeedLine], facts: Iterable[PartitionFacts], path: Path) -> Mapping[tuple[str, int], int]:
    """Positions by partition, each one known to the flow and within the source's log (pure). ArgumentError naming the line."""
    known = {(entry.topic, entry.partition): entry for entry in facts}
    for seed in seeds:
        entry = known.get((seed.topic, seed.partition))
        where = f"{path}:{seed.line}: {seed.topic}-{seed.partition}"
        if entry is None:
            raise ArgumentError(f"{where}: the flow does not copy such a partition")
        if not 0 <= seed.position <= entry.stable_end:
            raise ArgumentError(f"{where}: position {seed.position} is outside the source's log, which ends at {entry.stable_end}")
    return {(seed.topic, seed.partition): seed.position for seed in seeds}


def seed_from_file(flow: Flow, request: RunRequest, path: Path) -> RunReport:
    """Write the seeds of a file; the report names what failed."""
    seeds = read_seed_file(path)
    seen = prepare_remote_topics(flow, request.narrowed(*dict.fromkeys(seed.topic for seed in seeds)))
    positions = check_seeds(seeds, seen.facts, path)
    CopyDriver(flow, request, InlineLaneRunner(), lambda _: None).seed(positions, f"operator: {path.name}")
    return assemble_report(flow, request)
