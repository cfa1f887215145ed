"""`make how-tos`: a fresh clone of the last commit, then every how-to as it is written, one after the other.

    python -m tests.documents.how_tos [PAGE …]

Nothing but the pages is followed: `make setup` is run where the tutorial says so, and only the clone's own environment is on the way.
Sandboxes that a failed page left running are stopped.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.documents.code_blocks import Reader, blocks_of
from tests.documents.stages import STAGES, leave

ROOT = Path(__file__).parents[2]
# The tutorial first: it installs.
FIRST = "docs/tutorial.md"


def pages() -> list[str]:
    """Every page with commands that can be run."""
    others = sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.name != Path(FIRST).name and runs(page))
    return [FIRST, "README.md", *others]


def runs(page: Path) -> bool:
    """Whether a page has commands that are run."""
    return any(block.language == "sh" and block.mark != "not run" for block in blocks_of(page))


def follow(names: list[str]) -> int:
    """Follow these pages in a fresh clone; how many did not do what they say."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ferry-how-tos-") as name:
        clone = Path(name) / "ferry"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        for page in names:
            began = time.monotonic()
            reader = Reader(clone, {"PATH": path, "PYTHONPATH": "", "VIRTUAL_ENV": "", "PYSPARK_PYTHON": ""}, installs=True, stages=STAGES)
            try:
                reader.follow(clone / page)
            except (AssertionError, subprocess.TimeoutExpired) as problem:
                failed += 1
                print(f"FAILED {problem}", flush=True)  # noqa: T201 - its output
            finally:
                leave(clone)
            print(f"{page}: {reader.commands} blocks, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201 - its output
            for place in reader.left_out:
                print(f"  left out {place}", flush=True)  # noqa: T201 - its output
    return failed


if __name__ == "__main__":
    sys.exit(follow(sys.argv[1:] or pages()) > 0)
