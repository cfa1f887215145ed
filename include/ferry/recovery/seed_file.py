"""Seed files: positions that an operator wrote down."""

from __future__ import annotations

import csv
from pathlib import Path

from ferry.errors import ArgumentError
from ferry.recovery.positions import GivenPositions

COLUMNS = ("topic", "partition", "position")
LAST_PARTITION, LAST_OFFSET = (1 << 31) - 1, (1 << 63) - 1


def read_seed_file(path: Path) -> GivenPositions:
    """Read a CSV file with the header `topic,partition,position`. ArgumentError naming file and line for anything else."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines(), strict=True))
    except OSError as problem:
        raise ArgumentError(f"{path}: cannot be read: {problem.strerror}") from problem
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ArgumentError(f"{path}: cannot be read: {problem}") from problem
    if not rows or tuple(cell.strip() for cell in rows[0]) != COLUMNS:
        raise ArgumentError(f"{path}:1: the first line must be {','.join(COLUMNS)}")
    positions: dict[tuple[str, int], int] = {}
    places: dict[tuple[str, int], str] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        place = f"{path}:{number}"
        try:
            topic, partition, position = (cell.strip() for cell in row)
            key, offset = (topic, _number(partition, LAST_PARTITION)), _number(position, LAST_OFFSET)
        except ValueError as problem:
            raise ArgumentError(f"{place}: not topic,partition,position: {','.join(row)}") from problem
        if key in positions:
            raise ArgumentError(f"{place}: {topic}-{partition} stands there twice")
        positions[key], places[key] = offset, place
    if not positions:
        raise ArgumentError(f"{path}: names no partition")
    return GivenPositions(f"operator: {path.name}", positions, places, binding=True)


def _number(digits: str, last: int) -> int:
    """ValueError for anything but the digits 0 to 9 of a number up to `last`."""
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(last)) or int(digits) > last:
        raise ValueError(f"not a number from 0 to {last}")
    return int(digits)
