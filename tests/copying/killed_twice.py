"""`ferry run` of a flow with a message handler, killed as soon as each of two transactions has been committed, the next one under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.opened import read_receipts
from tests.waiting import until

from ferry.config import Flow
from ferry.errors import ClusterUnreachable


def run_killed_twice(config: Path, flow: Flow, modules: Path) -> None:
    """Kills two runs, and lets a third one end. `modules`: the directory that holds the handler."""
    command = [sys.executable, "-m", "ferry.cli.main", "run", str(config), "--flow", flow.name, "--master", "inline"]
    environment = {**os.environ, "PYTHONPATH": f"{modules}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    committed = 0
    for _ in range(2):
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            until(lambda before=committed: _copied(flow) > before or running.poll() is not None)  # type: ignore[misc]
            running.send_signal(signal.SIGKILL)
        committed = _copied(flow)
    assert committed > 0
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _copied(flow: Flow) -> int:
    try:
        return sum(receipt.counters.records for receipt in read_receipts(flow))
    except ClusterUnreachable:  # the ledger is just being created
        return 0
