"""How many replicas a new topic gets. It keeps that number for good, so brokers that are down must not lower it.

Ferry asks for the number in the config as it is. Where the config has none, Ferry tries its default, and asks for less only where the
cluster has fewer brokers. Brokers that are down count too: the replica lists of topics name them, and a cluster has at least as many
brokers as its default.replication.factor. KRaft controllers place replicas on registered brokers that are down; ZooKeeper ones refuse
until enough brokers are up.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ferry.clusters.describe import WantedTopic
from ferry.errors import FerryError, TooFewBrokers

if TYPE_CHECKING:
    from ferry.clusters.admin import ClusterAdmin
    from ferry.config.replicas import WantedReplicas


def replicas_for(wanted: WantedReplicas, target: ClusterAdmin, names: Collection[str]) -> int:
    """The replication factor to ask for when `names` are created (-1: the broker's default). Creates nothing."""
    if wanted.given or wanted.factor < 0 or not names:
        return wanted.factor
    problems = target.create_topics((WantedTopic(name, 1, wanted.factor) for name in names), dry_run=True)
    if not any(isinstance(problem, TooFewBrokers) for problem in problems.values()):
        return wanted.factor
    return wanted.on(len(target.brokers().known), broker_default(target))


def broker_default(cluster: ClusterAdmin) -> int:
    """How many replicas a topic gets that asks for no number; 1 where the user may not see it."""
    try:
        return int(cluster.broker_configs()["default.replication.factor"].value or 1)
    except (FerryError, KeyError):
        return 1


def with_key(problem: FerryError, wanted: WantedReplicas, target: ClusterAdmin) -> FerryError:
    """The error of creating a topic. TooFewBrokers also gets the key that sets the number, and how many brokers there are."""
    if not isinstance(problem, TooFewBrokers):
        return problem
    brokers = target.brokers()
    value = f"{wanted.key}={wanted.factor}{'' if wanted.given else ' (the default)'}"
    count = f"{len(brokers.up)} of {len(brokers.known)} known brokers of {target.alias} are up"
    mend = f"start the others, or set {wanted.key} to the number that this cluster should always have"
    return TooFewBrokers(f"{problem}; {value}, and {count}: {mend}")
