"""How many replicas a topic gets that is about to be created: it keeps them for good, so brokers that are down must not lower the number.

A value of the config is asked for as it is. Ferry's default is tried first; only a cluster that has too few brokers gets less. How many it
has is not only how many are up: the replica lists of its topics name others, and its own default.replication.factor wants as many.
Controllers of KRaft place replicas on registered brokers that are down too; with ZooKeeper they refuse until enough are up.
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
    """What topics get that ask for no number; 1 where the user may not see it."""
    try:
        return int(cluster.broker_configs()["default.replication.factor"].value or 1)
    except (FerryError, KeyError):
        return 1


def with_key(problem: FerryError, wanted: WantedReplicas, target: ClusterAdmin) -> FerryError:
    """What creating a topic met; where brokers are too few, which key wants so many, and how many there are."""
    if not isinstance(problem, TooFewBrokers):
        return problem
    brokers = target.brokers()
    value = f"{wanted.key}={wanted.factor}{'' if wanted.given else ' (the default)'}"
    count = f"{len(brokers.up)} of {len(brokers.known)} known brokers of {target.alias} are up"
    return TooFewBrokers(f"{problem}; {value}, and {count}: start the others, or set {wanted.key} to what this cluster is to have for good")
