"""Ledger upkeep in the middle of everything: as at the start of a run, but of receipts that are seconds old instead of a day.

`python -m tests.drills.soak.upkeep CONFIG`: a process of its own, so it can be struck like any other.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ferry.config import load_config
from ferry.copying import ledger_compaction as upkeep
from ferry.ledger.open_flow import open_flow

YOUNG_MILLISECONDS = 5_000


def main() -> int:
    upkeep.YOUNG_MILLISECONDS = YOUNG_MILLISECONDS
    with open_flow(load_config(Path(sys.argv[1])).flows[0]) as opened:
        done = upkeep.compact_ledger(opened)
    print(f"{len(done.merged)} receipts merged, {len(done.replaced)} gone")  # noqa: T201 - its answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
