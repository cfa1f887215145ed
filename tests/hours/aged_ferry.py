"""The command `ferry` in a world where receipts are old after minutes: `python -m tests.hours.aged_ferry run …`.

The ledger of a flow grows for a day before its first receipts are merged. With receipts that are old after five minutes, what a day shows
is seen within the hour.
"""

from __future__ import annotations

import sys

from ferry.cli.main import main
from ferry.copying import ledger_compaction

YOUNG_MILLISECONDS = 300_000
COMPACTION_RECORDS = 1_000

if __name__ == "__main__":
    ledger_compaction.YOUNG_MILLISECONDS, ledger_compaction.COMPACTION_RECORDS = YOUNG_MILLISECONDS, COMPACTION_RECORDS
    sys.exit(main())
