"""Libraries of others are what their table says, and nothing of the page is loaded from elsewhere."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import ferry.page

pytestmark = pytest.mark.unit

STATIC = Path(ferry.page.__file__).parent / "static"
VENDOR = STATIC / "vendor"
ROW = re.compile(r"^\| `([\w.-]+)` \|.*\| `([0-9a-f]{64})` \|$", re.MULTILINE)


def test_vendored_files_are_what_the_table_says() -> None:
    table = dict(ROW.findall((VENDOR / "README.md").read_text(encoding="utf-8")))
    files = {path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    assert files == set(table)
    assert {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in files} == table


def test_the_page_loads_nothing_from_elsewhere() -> None:
    own = [path for path in STATIC.iterdir() if path.suffix in {".js", ".css", ".html"}]
    assert own
    assert [path.name for path in own if re.search(r"https?://|//[\w-]+\.\w+/", path.read_text(encoding="utf-8"))] == []
