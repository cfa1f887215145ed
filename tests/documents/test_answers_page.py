"""docs/answers.md says what the tables of ferry.clusters.net.error_policy say."""

from __future__ import annotations

import pytest
from tools.docs.answers_page import PAGE, page

pytestmark = pytest.mark.unit


def test_the_page_says_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.docs"
