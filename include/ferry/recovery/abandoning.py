"""Saying that groups stay on the side where they are now, after a false alarm. Writes the flow's record and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.ledger.stages import Event
from ferry.recovery.keeper import RecoveryKeeper

if TYPE_CHECKING:
    from ferry.config import Flow


def abandon(flow: Flow, event: Event) -> str:
    """Take `event`; the stage then. RecoveryStopped when there is nothing of the kind to abandon."""
    with RecoveryKeeper(flow) as keeper:
        keeper.end(event, "abandoned")
        return keeper.record.stage
