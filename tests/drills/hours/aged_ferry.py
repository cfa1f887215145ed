"""The command `ferry` in a world where receipts are old after minutes: `python -m tests.drills.hours.aged_ferry run …`.

The ledger of a flow grows for a day before its first receipts are merged. With receipts that are old after two minutes, what a day shows
is seen within the hour.
"""

from __future__ import annotations

import sys

from ferry.cli.main import main
from ferry.copying import ledger_compaction

YOUNG_MILLISECONDS = 120_000
COMPACTION_RECORDS = 250

if __name__ == "__main__":
    ledger_compaction.YOUNG_MILLISECONDS, ledger_compaction.COMPACTION_RECORDS = YOUNG_MILLISECONDS, COMPACTION_RECORDS
    sys.exit(main())
