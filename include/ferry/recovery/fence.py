"""Ending what a run left behind that was cut off from a source: its open transactions hold back every reader of the target.

As at the start of a run: the run id and every lane id ever used are taken over, which aborts what is open and fences the older holder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.clusters.admin import ClusterAdmin
from ferry.copying.fencing import RunLease
from ferry.ledger.reading import refuse_newer_state

if TYPE_CHECKING:
    from ferry.config import Flow


def end_what_is_cut_off(flow: Flow) -> None:
    """Take the flow over and leave it. Nothing is written; without a state topic nothing ever ran."""
    own = flow.state_topic
    with ClusterAdmin(flow.target) as target:
        if own not in target.topics():
            return
    refuse_newer_state(flow)
    with RunLease(flow, flow.position_group, [flow.ledger_topic, own]) as hold:
        hold.take_lanes()
