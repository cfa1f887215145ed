"""Rows of the page of results, one for each scenario: appended as JSON lines to the file that FERRY_BOUNCES names."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.drills.bounces.verdict import Verdict


@dataclass(frozen=True)
class Row:
    """What was done and what came of it; `behind` in seconds from the end of the fault until the target had everything.

    `told`: by runs that failed.
    """

    suite: str
    scenario: str
    done: str
    verdict: Verdict
    behind: float
    exits: dict[int, int] = field(default_factory=dict)
    hanging: int = 0
    more: str = ""
    told: list[str] = field(default_factory=list)


def note(row: Row) -> None:
    """Keep it, if somebody wants it."""
    if path := os.environ.get("FERRY_BOUNCES"):
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
