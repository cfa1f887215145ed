"""Which groups count as synced."""

from __future__ import annotations

import pytest

from ferry.errors import GroupFailed
from ferry.ledger.run_report import Skipped
from ferry.syncs.group_writing import GroupTally

pytestmark = pytest.mark.unit


def test_a_group_with_anything_left_alone_or_failed_is_not_synced() -> None:
    tally = GroupTally(
        skipped=[Skipped("group a", "active"), Skipped("group b, c, A.t-0", "backwards")], current=[Skipped("group up", "to date")]
    )
    tally.failure("group d, A.t-1", GroupFailed("refused"))
    assert tally.unsynced({"a", "b, c", "d", "up"}) == {"a", "b, c", "d"}
