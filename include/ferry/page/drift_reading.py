"""Reads how topics, configs and ACLs differ between both sides, by dry runs of their syncs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ferry.config import Flow
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.pipeline.syncs import Syncs
from ferry.syncs.names import SyncName

COMPARED = (SyncName.TOPICS, SyncName.CONFIGS, SyncName.ACLS)
# So many entries of each list are sent; totals count all.
NAMED = 500


def read_drift(flow: Flow) -> dict[str, Any]:
    """What each sync would change now, what it would leave alone and why, and which syncs are off."""
    syncs = Syncs(flow, dry_run=True)
    return drift_of({name.value: syncs.carry_out(name, on_request=True, unless_disabled=True) for name in COMPARED})


def drift_of(outcomes: Mapping[str, SyncOutcome]) -> dict[str, Any]:
    """The outcomes of dry runs as one document (pure)."""
    left = [{**asdict(entry), "sync": name} for name, outcome in outcomes.items() for entry in outcome.skipped]
    failed = [{**asdict(entry), "sync": name} for name, outcome in outcomes.items() for entry in outcome.failed]
    return {
        **{name: [asdict(change) for change in outcome.changes[:NAMED]] for name, outcome in outcomes.items()},
        "totals": {name: len(outcome.changes) for name, outcome in outcomes.items()},
        "left_alone": left[:NAMED],
        "left_alone_total": len(left),
        "failed": failed[:NAMED],
        "failed_total": len(failed),
        "notices": [notice for outcome in outcomes.values() for notice in outcome.notices][:NAMED],
        "off": {name: outcome.left_out for name, outcome in outcomes.items() if outcome.left_out},
    }
