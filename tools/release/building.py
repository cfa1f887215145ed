"""Builds the wheel and the source distribution from a checkout. Two builds of one commit are the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commit_time(root: Path = ROOT) -> int:
    """When the commit of the checkout was made, in seconds since the epoch: every file of a release has this time."""
    return int(subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, check=True, capture_output=True, text=True).stdout)


def build(target: str, folder: Path, root: Path = ROOT) -> Path:
    """The `target` (wheel, sdist) in `folder`."""
    before = set(folder.glob("*"))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder.absolute()],
        cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(commit_time(root))},
        check=True,
        capture_output=True,
    )
    (made,) = set(folder.glob("*")) - before
    return made
