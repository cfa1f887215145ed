"""The registry of properties, and the document made of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferry.config.document import DOCUMENT, document
from ferry.config.registry import CLIENT_PROPERTIES, FILE_PROPERTIES, FLOW_PROPERTIES, WORKER_PROPERTIES, Effect, Property
from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import FLOWS
from ferry.config.registry.workers import FILE, WORKERS

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
EVERY = (*FERRY, *FILE, *FLOWS, *CLIENTS, *WORKERS)


@pytest.mark.parametrize("known", EVERY, ids=lambda known: known.name)
def test_rows_are_complete(known: Property) -> None:
    assert known.meaning
    assert bool(known.why) == (known.effect is not Effect.HONOURED)
    if known.default is not None:
        known.kind.parse(known.default)


def test_no_name_stands_twice_in_a_table() -> None:
    assert len(CLIENT_PROPERTIES) == len(CLIENTS)
    assert len(FILE_PROPERTIES) == len(FILE)
    assert len(WORKER_PROPERTIES) == len(WORKERS)
    assert len(FLOW_PROPERTIES) == len(FLOWS) + len(FERRY) - 1  # one of Ferry's is a cluster's


def test_document_says_what_the_registry_says() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == document(), "run: python -m ferry.config.document"


def test_document_names_every_property() -> None:
    rows = document().split("\n")
    assert all(sum(row.startswith(f"| `{known.name}` |") for row in rows) >= 1 for known in EVERY)
    assert all(row.replace("\\|", "").count("|") in {3, 7} for row in rows if row.startswith("|"))


def test_document_is_written_by_the_module(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "ferry.config.document", str(tmp_path / "p.md")], check=True, cwd=tmp_path)
    assert (tmp_path / "p.md").read_text(encoding="utf-8") == document()
