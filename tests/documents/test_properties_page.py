"""docs/properties.md says what the registry says."""

from __future__ import annotations

import pytest
from tools.docs.properties_page import PAGE, page

from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import FLOWS
from ferry.config.registry.workers import FILE, WORKERS

pytestmark = pytest.mark.unit


def test_the_page_says_what_the_registry_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.docs"


def test_the_page_names_every_property() -> None:
    rows = page().split("\n")
    assert all(sum(row.startswith(f"| `{known.name}` |") for row in rows) >= 1 for known in (*FERRY, *FILE, *FLOWS, *CLIENTS, *WORKERS))
    assert all(row.replace("\\|", "").count("|") in {3, 7} for row in rows if row.startswith("|"))
