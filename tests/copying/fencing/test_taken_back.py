"""Lanes that are taken back while other lanes hold transactions: far away each question of its own would be a round trip more."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.copying.fencing import RunLease

pytestmark = pytest.mark.unit


class Lease(RunLease):
    """Notes what it asks the target."""

    asked: list[object]

    def confirm(self, _: float | None = None) -> None:
        self.asked.append("confirm")

    def take(self, names: Sequence[str]) -> list[ProducerIdentity]:
        self.asked.append(tuple(names))
        return [ProducerIdentity(int(name), 0) for name in names]


def test_all_lanes_are_taken_back_at_once_between_two_proofs() -> None:
    opened: Any = SimpleNamespace(flow=SimpleNamespace(name="A->B", lanes=8, transactional_id=str))
    lease = Lease(opened)
    lease.asked = []
    assert lease.retake({5: "its worker died", 3: "it was fenced"}) == {5: ProducerIdentity(5, 0), 3: ProducerIdentity(3, 0)}
    assert lease.asked == ["confirm", ("5", "3"), "confirm"]
