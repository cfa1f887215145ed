"""Ferry's own topics on the target: ledger, state, runs.

Ledger and state must be compacted. With another cleanup policy, records that explain the copy would expire, so Ferry refuses such a topic.
No other config is needed: Ferry creates the topics without those that the cluster refuses (docs/internal-topics.md says what each of them
is for). An administrator may create the topics beforehand.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.creation import create_topics
from ferry.clusters.admin.describe import ConfigValue, WantedTopic
from ferry.clusters.admin.replication import replicas_for, wait_for_leaders, with_key
from ferry.config import Flow
from ferry.config.settings import OWN_TOPICS
from ferry.errors import ChangeRefused, ConfigError
from ferry.ledger.run_summary import DAYS_KEPT
from ferry.permissions.required import rights_on_topic

POLICY = "cleanup.policy"
# Ferry writes small batches that are not compressed. Brokers that compress them would spend more on it than they save.
AS_WRITTEN = {"compression.type": "producer"}
# Small segments and early compaction, so that the topics do not grow with the number of runs.
SMALL = {"segment.bytes": str(16 << 20), "segment.ms": str(6 * 3600 * 1000), "min.cleanable.dirty.ratio": "0.1", **AS_WRITTEN}
RUNS_KEPT = "retention.ms"
RUNS = {RUNS_KEPT: str(DAYS_KEPT * 24 * 3600 * 1000), **AS_WRITTEN}


@dataclass(frozen=True)
class OwnTopic:
    """What a topic of Ferry needs: partitions and cleanup policy. `more`: configs that Ferry leaves out if the cluster refuses them."""

    partitions: int
    policy: str
    more: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)


def own_topics(flow: Flow) -> dict[str, OwnTopic]:
    """Ferry's topics, by name."""
    return {
        flow.ledger_topic: OwnTopic(flow.ledger_partitions, "compact", SMALL),
        flow.state_topic: OwnTopic(1, "compact", SMALL),
        flow.runs_topic: OwnTopic(1, "delete", RUNS),
    }


def refuse_wrong_policy(flow: Flow, target: ClusterAdmin, existing: Collection[str]) -> None:
    """ConfigError if the ledger or the state topic exists and is not compacted."""
    needed = [name for name in (flow.ledger_topic, flow.state_topic) if name in existing]
    for name, entries in (target.topic_configs(needed) if needed else {}).items():
        if wrong := wrong_policy(name, "compact", entries):
            raise ConfigError(
                f"cluster {target.alias}: {wrong}: set it to compact, or records that explain the copy expire: "
                f"{policy_command(flow.target.bootstrap, name, 'compact')}"
            )


def wrong_policy(name: str, policy: str, entries: Mapping[str, ConfigValue]) -> str:
    """What is wrong with the cleanup policy of a topic whose configs are `entries`, for people; empty: nothing."""
    found = entries[POLICY].value if POLICY in entries else None
    return f"topic {name} has {POLICY}={found}" if found not in {policy, None} else ""


def policy_command(bootstrap: str, name: str, policy: str) -> str:
    """Kafka's command that sets the cleanup policy of a topic."""
    servers = bootstrap.replace(" ", "")
    change = f"--alter --entity-type topics --entity-name {name} --add-config {POLICY}={policy}"
    return f"kafka-configs.sh --bootstrap-server {servers} {change}"


def ensure_internal_topics(flow: Flow, target: ClusterAdmin) -> tuple[str, ...]:
    """Create the topics that are missing; returns their names.

    ConfigError for a wrong policy, also if the cluster created a topic with another one than Ferry wanted; TooFewBrokers.
    """
    wanted = own_topics(flow)
    existing = {name for name in wanted if target.exists(name)}
    refuse_wrong_policy(flow, target, existing)
    missing = {name: own for name, own in wanted.items() if name not in existing}
    if not missing:
        return ()
    replicas = flow.wanted_replicas(OWN_TOPICS)
    factor, rights = replicas_for(replicas, target, list(missing)), partial(rights_on_topic, flow)
    topics = [WantedTopic(name, own.partitions, factor, {POLICY: own.policy}, rights, own.more) for name, own in missing.items()]
    for name, problem in create_topics(target, topics).problems.items():
        if isinstance(problem, ChangeRefused) and POLICY in str(problem):
            own = missing[name]
            raise ConfigError(f"{problem}; create the topic beforehand, with {POLICY}={own.policy} and partitions: {own.partitions}")
        raise with_key(problem, replicas, target)
    wait_for_leaders(target, {name: own.partitions for name, own in missing.items()}, rights)
    refuse_wrong_policy(flow, target, missing)
    return tuple(missing)
