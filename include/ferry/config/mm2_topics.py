"""MirrorMaker 2's internal topics that a flow writes, and where (pure).

Heartbeats and checkpoints are on the target. `offset-syncs.topic.location` says where offset syncs are: on the source, in a topic named
after the target, or on the target, in a topic named after the source.
"""

from dataclasses import dataclass

from ferry.config.cluster import Cluster
from ferry.config.flow import Flow
from ferry.config.settings import CHECKPOINTS, HEARTBEATS, OFFSET_SYNCS, WantedReplicas


@dataclass(frozen=True)
class Mm2Topic:
    """One of these topics. `holds`: its content, for people. `read_back`: the flow also reads it."""

    cluster: Cluster
    name: str
    holds: str
    replicas: WantedReplicas
    read_back: bool = True


def heartbeats_topic(flow: Flow, cluster: Cluster) -> Mm2Topic:
    """The heartbeats topic of one of the flow's clusters."""
    return Mm2Topic(cluster, flow.policy.heartbeats_topic(), "heartbeats", flow.wanted_replicas(HEARTBEATS), read_back=False)


def checkpoints_topic(flow: Flow) -> Mm2Topic:
    name = flow.policy.checkpoints_topic(flow.source.alias)
    return Mm2Topic(flow.target, name, "checkpoints", flow.wanted_replicas(CHECKPOINTS))


def offset_syncs_topic(flow: Flow) -> Mm2Topic:
    on, other = flow.target, flow.source
    if flow.mirroring.offset_syncs_topic_location == "source":
        on, other = other, on
    return Mm2Topic(on, flow.policy.offset_syncs_topic(other.alias), "offset syncs", flow.wanted_replicas(OFFSET_SYNCS))


def mm2_topics(flow: Flow) -> tuple[Mm2Topic, ...]:
    """The topics that the flow writes as it is configured, without the heartbeats of the other direction."""
    settings = flow.mirroring
    topics = (
        (settings.emit_heartbeats_enabled, heartbeats_topic(flow, flow.target)),
        (settings.emit_checkpoints_enabled, checkpoints_topic(flow)),
        (settings.emit_offset_syncs_enabled, offset_syncs_topic(flow)),
    )
    return tuple(topic for enabled, topic in topics if enabled)
