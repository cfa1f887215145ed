"""Which topic on the other side holds what a group reads, and whose ledger says where (pure).

Rules from MirrorCheckpointTask and MirrorCheckpointConnector: topics count by the flow's topic filter alone, and a topic that came from
the other cluster is, there, its own upstream topic, so that groups find their way back. Under a policy that keeps names a topic may hold
records of both clusters.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferry.config import Flow


class Way(Enum):
    """How a topic is translated from the cluster where the group is (home) to the other one (away)."""

    FORWARD = "by what was copied from home to away"
    INVERSE = "by what was copied from away to home"
    BOTH = "by both: the topic has the same name on both sides"


@dataclass(frozen=True)
class Route:
    """Where a topic leads. `problem` says why nowhere; empty otherwise."""

    remote_topic: str
    way: Way
    problem: str = ""


def find_route(
    flow: Flow, topic: str, home_topics: Collection[str], away_topics: Collection[str], *, by_upstream_name: bool = False
) -> Route:
    """The route of a topic that a group reads on the flow's source.

    `by_upstream_name`: the filter speaks of names on the flow's target, where a topic that came from there has its upstream name.
    """
    policy = flow.policy
    home, away = flow.source.alias, flow.target.alias
    came_from_away = policy.topic_source(topic) == away
    upstream = policy.upstream_topic(topic) if came_from_away else None
    if upstream is not None and upstream != topic:
        route = Route(upstream, Way.INVERSE)
    else:
        route = Route(policy.format_remote_topic(home, topic), Way.FORWARD)
        if route.remote_topic == topic:
            route = Route(topic, Way.BOTH)
    name = route.remote_topic if by_upstream_name and route.way is Way.INVERSE else topic
    problem = flow.topic_filter.why_not(name)
    if not problem and route.way is not Way.INVERSE:
        problem = flow.topic_rules.why_not(topic)
    if problem:
        problem = f"the flow does not copy the topic: {problem}"
    elif topic not in home_topics:
        problem = f"cluster {home} has no such topic, or hides it from the user"
    elif route.remote_topic not in away_topics:
        problem = f"cluster {away} has no topic {route.remote_topic}, or hides it from the user"
    return Route(route.remote_topic, route.way, problem or "")
