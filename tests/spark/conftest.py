"""What executors get that have no Ferry of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make spark-environment` makes."""
    path = tmp_path_factory.mktemp("archive") / "executors.tar.gz"
    subprocess.run([str(ROOT / "setup" / "spark-environment.sh"), str(path), sys.executable], check=True, timeout=900)
    return path
