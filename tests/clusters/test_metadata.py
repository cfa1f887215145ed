"""What Metadata says of a topic that the user may not describe."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters import metadata

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("missing", "refused", "exists"), [(False, 0, True), (True, 0, False), (False, 29, False)])
def test_a_topic_that_the_user_may_not_describe_does_not_count_as_there(missing: bool, refused: int, exists: bool) -> None:
    """Brokers refuse to describe it whether it exists or not."""

    async def known(_: object) -> None:
        """Nothing to ask."""

    leaders = SimpleNamespace(known=known, is_missing=lambda _: missing, refused=lambda _: refused)
    connection: Any = SimpleNamespace(leaders=leaders)
    assert asyncio.run(metadata.exists(connection, "t")) is exists
