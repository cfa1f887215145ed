"""Internal topics that exist, but are not as Ferry would create them (pure): somebody else has created them, or changed them.

Only a ledger or state topic that is not compacted stops a run (ferry.ledger.topics). Of the others Ferry says what is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.clusters.admin.describe import ConfigValue, TopicDescription
from ferry.config import Cluster, Flow
from ferry.config.mm2_topics import mm2_topics
from ferry.config.settings import HEARTBEATS
from ferry.ledger.topics import own_topics, policy_command, wrong_policy

Configs = Mapping[str, Mapping[str, ConfigValue]]


@dataclass(frozen=True)
class WrongTopic:
    """An internal topic that is not as Ferry would create it."""

    problem: str  # what is wrong, and what follows from it
    fix: str  # a command or a sentence
    stops: bool = False  # no run begins before it is fixed

    def __str__(self) -> str:
        return self.problem


def names_on(flow: Flow, cluster: Cluster) -> frozenset[str]:
    """The flow's internal topics on one of its clusters, whether they exist or not."""
    own = frozenset(own_topics(flow) if cluster is flow.target else ())
    return own | {topic.name for topic in mm2_topics(flow) if topic.cluster is cluster}


def wrong_topics(flow: Flow, cluster: Cluster, topics: Mapping[str, TopicDescription], configs: Configs) -> tuple[WrongTopic, ...]:
    """The wrong ones of the flow's internal topics on `cluster`. `configs` may lack topics whose configs the user may not describe."""
    needed = {topic.name: "compact" for topic in mm2_topics(flow) if topic.cluster is cluster and topic.replicas.key != HEARTBEATS}
    lost = dict.fromkeys(needed, "its records expire after retention.ms, and MirrorMaker 2's clients no longer find them")
    single = {topic.name for topic in mm2_topics(flow) if topic.cluster is cluster}
    stops: set[str] = set()
    if cluster is flow.target:
        needed |= {name: own.policy for name, own in own_topics(flow).items()}
        single |= own_topics(flow).keys() - {flow.ledger_topic}
        stops = {flow.ledger_topic, flow.state_topic}
        lost |= dict.fromkeys(stops, "records that explain the copy expire")
        lost[flow.runs_topic] = "it keeps records of every run for ever"
    found = []
    for name, policy in needed.items():
        if name in topics and (wrong := wrong_policy(name, policy, configs.get(name, {}))):
            found.append(WrongTopic(f"{wrong}: {lost[name]}", policy_command(cluster.bootstrap, name, policy), name in stops))
    for name in sorted(single & topics.keys()):
        if topics[name].partitions > 1:
            problem = f"topic {name} has {topics[name].partitions} partitions, and only the first is used"
            found.append(WrongTopic(problem, "nothing is lost; if you create the topic again, give it one partition"))
    return tuple(found)
