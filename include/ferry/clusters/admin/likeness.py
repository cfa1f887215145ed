"""Whether two aliases name one cluster.

Cluster ids alone do not show it: two clusters have one id if somebody copied a compose file, and some proxies give no id. So if the ids do
not differ, Ferry looks further. Other addresses or other visible topics prove nothing: one cluster may have several listeners, and users
who see different topics. Two things prove two clusters: a topic with another id on each side, or a topic that one side has and the other
side says it lacks. Copies of disks have equal topic ids, and count as one cluster: a flow must never copy a cluster to itself.
"""

from dataclasses import dataclass

from ferry.clusters.admin.cluster_admin import MISSING, ClusterAdmin

# Enough topics: one of them is likely to be one that the other side's user may describe.
NAMES_ASKED = 50


@dataclass(frozen=True)
class Likeness:
    """Two clusters whose ids do not differ. `same`: nothing shows that they are two. `why`: what shows it, or that they are one."""

    same: bool
    why: str
    remedy: str = "correct bootstrap.servers"


def likeness(source: ClusterAdmin, target: ClusterAdmin) -> Likeness | None:
    """None for clusters with different ids. Errors as of ClusterAdmin."""
    ids = source.cluster_id(), target.cluster_id()
    if all(ids) and ids[0] != ids[1]:
        return None
    both = f"{source.where} and {target.where}"
    told = f"both have cluster id {ids[0]}" if all(ids) else "not both have a cluster id"
    if common := source.addresses() & target.addresses():
        return Likeness(True, f"{both} are the same cluster: both have the broker {min(common)}")
    here, there = source.topics(), target.topics()
    named = {name: (here[name].topic_id, there[name].topic_id) for name in sorted(here.keys() & there.keys())}
    for name, (one, other) in named.items():
        if one is not None and one == other:
            return Likeness(True, f"{both} are the same cluster: topic {name} has the same id on both")
    apart = next((f"topic {name} has another id on each" for name, pair in named.items() if None not in pair), "")
    apart = apart or _lacking(source, here.keys() - there.keys(), target) or _lacking(target, there.keys() - here.keys(), source)
    if apart:
        return Likeness(False, f"{both} are two clusters, though {told}: {apart}", "nothing, if you meant these two")
    why = f"{both} cannot be told apart: {told}, and Ferry sees no topic that only one of them has"
    return Likeness(
        True, why, "correct bootstrap.servers; if they are two clusters, create a topic on the source that both users may describe"
    )


def _lacking(owner: ClusterAdmin, names: set[str], other: ClusterAdmin) -> str:
    """The first of the owner's topics that the other cluster lacks, in words. The owner is asked again: a topic may have been deleted."""
    asked = other.topics_that(MISSING, sorted(names)[:NAMES_ASKED])
    found = owner.topics(asked) if asked else {}
    return next((f"only {owner.alias} has topic {name}" for name in found), "")
