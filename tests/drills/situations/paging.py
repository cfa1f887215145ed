"""An alert callback: one line of JSON for each alert."""

from __future__ import annotations

import json
from pathlib import Path

from ferry.alerting.alert import Alert


def page(alert: Alert, path: str) -> None:
    with Path(path).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(alert.document()) + "\n")
