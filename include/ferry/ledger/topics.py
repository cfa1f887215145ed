"""Ferry's own topics on the target: ledger, state, runs.

Ledger and state must be compacted. With another cleanup policy, records that explain the copy would expire, so Ferry refuses such a topic.
"""

from functools import partial

from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.describe import WantedTopic
from ferry.clusters.replication import replicas_for, wait_for_leaders, with_key
from ferry.config import Flow
from ferry.config.settings import OWN_TOPICS
from ferry.errors import ConfigError
from ferry.ledger.run_summary import DAYS_KEPT
from ferry.permissions.required import rights_on_topic

# Small segments and early compaction, so that the topics do not grow with the number of runs.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "segment.ms": str(6 * 3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
    "compression.type": "producer",
}
# A run that follows writes the same receipt again and again. A reader that began before must still find the older record.
LEDGER = {**COMPACTED, "min.compaction.lag.ms": str(10 * 60 * 1000)}
EXPIRING = {"cleanup.policy": "delete", "retention.ms": str(DAYS_KEPT * 24 * 3600 * 1000), "compression.type": "producer"}


def _wanted(flow: Flow) -> dict[str, tuple[int, dict[str, str]]]:
    """Partitions and config of each topic."""
    return {flow.ledger_topic: (flow.ledger_partitions, LEDGER), flow.state_topic: (1, COMPACTED), flow.runs_topic: (1, EXPIRING)}


def internal_topics(flow: Flow) -> frozenset[str]:
    return frozenset(_wanted(flow))


def ensure_internal_topics(flow: Flow, target: ClusterAdmin) -> tuple[str, ...]:
    """Create what is missing; returns the names of created topics. ConfigError for a wrong policy, TooFewBrokers for too few replicas."""
    wanted = _wanted(flow)
    existing = {name for name in wanted if target.exists(name)}
    for name, entries in target.topic_configs({flow.ledger_topic, flow.state_topic} & existing).items():
        found = entries["cleanup.policy"].value or ""
        if found != "compact":
            raise ConfigError(
                f"cluster {target.alias}: topic {name} has cleanup.policy={found}: set it to compact, "
                "or records that explain the copy expire"
            )
    missing = [name for name in wanted if name not in existing]
    if not missing:
        return ()
    replicas = flow.wanted_replicas(OWN_TOPICS)
    factor = replicas_for(replicas, target, missing)
    topics = [WantedTopic(name, wanted[name][0], factor, wanted[name][1], partial(rights_on_topic, flow)) for name in missing]
    for problem in target.create_topics(topics).values():
        raise with_key(problem, replicas, target)
    wait_for_leaders(target, {name: wanted[name][0] for name in missing})
    return tuple(missing)
