"""Costs of real processes."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from benchmarks.process_tree import ProcessTree
from tests.waiting import until

pytestmark = pytest.mark.faults

BURN = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
CHILD_BURNS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"
GRANDCHILD_STAYS = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()"
HOLDS_MEMORY = "held = bytearray(80 << 20); import time; time.sleep(600)"


def start(script: str, directory: Path, *arguments: str) -> ProcessTree:
    return ProcessTree([sys.executable, "-c", script, *arguments], directory / "log")


@pytest.mark.parametrize("script", [BURN, CHILD_BURNS], ids=["own", "of a child that ended"])
def test_cpu_seconds(script, tmp_path):
    tree = start(script, tmp_path)
    until(lambda: not tree.running)
    tree.finish()
    assert tree.exit_code == 0
    assert 0.4 <= tree.cost().cpu_seconds < 2


def test_exit_code_of_a_failure(tmp_path):
    tree = start("raise SystemExit(5)", tmp_path)
    until(lambda: not tree.running)
    tree.finish()
    assert tree.exit_code == 5


def test_memory_of_the_tree_and_of_its_python_workers(tmp_path):
    tree = start(HOLDS_MEMORY, tmp_path, "ferry.spark.worker_daemon")
    try:
        until(lambda: tree.cost().worker_peak_bytes > 80 << 20)
    finally:
        tree.finish()
    assert tree.cost().peak_bytes >= tree.cost().worker_peak_bytes
    assert tree.exit_code == -15


def test_finish_leaves_no_descendant(tmp_path):
    tree = start(GRANDCHILD_STAYS, tmp_path)
    children: list[psutil.Process] = []

    def grown() -> bool:
        children[:] = [
            process for process in psutil.Process().children(recursive=True) if process.cmdline()[-1:] == ["import time; time.sleep(600)"]
        ]
        return bool(children)

    until(grown)
    tree.finish()
    until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in children))
