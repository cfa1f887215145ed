"""What must hold of the installed environment and the locks."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pyspark  # noqa: TID251 - this test is about the installation
import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
LOCKS = {"requirements.txt": 80, "requirements-dev.txt": 80, "requirements-executors.txt": 10}


def test_pyspark_and_its_client_are_one_version() -> None:
    """Both distributions write to the same directory: a mix imports, and fails only in workers."""
    assert pyspark.__version__ == version("pyspark") == version("pyspark-client")
    jars = list((Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar"))
    assert [jar.stem.rsplit("-", 1)[1] for jar in jars] == [pyspark.__version__]


@pytest.mark.parametrize("name", LOCKS)
def test_locks_pin_everything_with_hashes_and_no_addresses(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert "--index" not in text
    pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==", text, re.MULTILINE | re.IGNORECASE)
    assert len(pins) > LOCKS[name]
    assert text.count("--hash=sha256:") >= len(pins)


def test_the_locks_hold_the_same_versions() -> None:
    runtime, development, executors = (set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE)) for name in LOCKS)
    assert executors <= runtime <= development
