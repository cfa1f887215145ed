"""Seed files: read strictly, checked against what the flow copies."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ferry.copying.plan import PartitionFacts
from ferry.errors import ArgumentError
from ferry.recovery.seeding import check_seeds, read_seed_file

pytestmark = pytest.mark.unit


def facts(end: int) -> PartitionFacts:
    return PartitionFacts("t", 0, UUID(int=1), "A.t", UUID(int=2), 1, 0, 0, end, end, 0)


def write(directory: Path, text: str) -> Path:
    path = directory / "seeds.csv"
    path.write_text(text)
    return path


def test_positions_by_partition(tmp_path: Path) -> None:
    path = write(tmp_path, "topic,partition,position\nt,0,7\n")
    assert check_seeds(read_seed_file(path), [facts(10)], path) == {("t", 0): 7}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t,0,7\n", ":1:"),
        ("topic,partition,position\n", "names no partition"),
        ("topic,partition,position\nt,zero,7\n", ":2:"),
        ("topic,partition,position\nt,0\n", ":2:"),
        ("topic,partition,position\nt,0,7\nt,0,8\n", ":3:"),
    ],
)
def test_bad_files_name_their_line(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        read_seed_file(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"nothing\.csv"):
        read_seed_file(tmp_path / "nothing.csv")


@pytest.mark.parametrize("line", ["t,1,7", "u,0,7", "t,0,11", "t,0,-1"])
def test_positions_outside_the_source_are_refused(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"topic,partition,position\n{line}\n")
    with pytest.raises(ArgumentError, match=":2:"):
        check_seeds(read_seed_file(path), [facts(10)], path)
