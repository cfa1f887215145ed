"""`make bounces`: both suites, then the page of what came of them. Exit code 1 when anything was lost, doubled, out of order, or failed."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.drills.bounces.page import page

PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "bounces.md"


def main() -> int:
    """The exit code of pytest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="only make the page of these results: the JSON lines of an earlier run")
    parser.add_argument("--circumstances", default="", help="what a reader should know about this run")
    options = parser.parse_args()
    given: Path | None = options.rows
    code = 0
    with tempfile.TemporaryDirectory(prefix="ferry-bounces-") as directory:
        rows = given or Path(directory) / "rows.jsonl"
        if given is None:
            command = [sys.executable, "-m", "pytest", "-m", "bounces", "tests/drills/bounces"]
            code = subprocess.run(command, check=False, env={**os.environ, "FERRY_BOUNCES": str(rows)}).returncode
        if rows.exists():
            found = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
            text = page(found, f"{time.strftime('%Y-%m-%d')}. {options.circumstances}".strip())
            PAGE.write_text(text, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
