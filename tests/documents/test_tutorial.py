"""The tutorial, command by command, with what it says they print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.documents.code_blocks import Reader

from ferry.sandbox.pair import down

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    room = tmp_path / "ferry"
    room.mkdir()
    (room / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    try:
        reader = Reader(room, {}, installs=False)
        reader.follow(ROOT / "docs" / "tutorial.md")
    finally:
        down(room / ".ferry" / "sandbox")
    assert reader.commands > 10
