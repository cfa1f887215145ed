"""Waits for what comes by itself. The one limit is against what never comes, and does not depend on the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable

# No machine is that slow: what has not come by then never comes. Below pytest's own limit, so that the test says what is missing.
NEVER_SECONDS = 900.0
LOOK_SECONDS = 0.05


def until(holds: Callable[[], object], missing: Callable[[], object] = lambda: "") -> None:
    """Until `holds` is true. AssertionError with what `missing` says when it never is."""
    deadline = time.monotonic() + NEVER_SECONDS
    while not holds():
        assert time.monotonic() < deadline, missing()
        time.sleep(LOOK_SECONDS)
