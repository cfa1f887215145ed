"""Finds topics and groups of a flow that a cluster hides from the user.

Kafka leaves topics and groups that the user may not describe out of every listing. Without a check Ferry would not copy such a topic, and
say nothing. But a broker that is asked for one name says whether the user may describe it, even if it does not exist. So Ferry asks for
names that the filters match and no listing shows: literal names, topics that were copied before, and one made-up name for each pattern that
matches nothing visible.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ferry.clusters.admin.acl_binding import AclResource
from ferry.clusters.admin.cluster_admin import HIDDEN, ClusterAdmin
from ferry.clusters.groups.consumer_groups import MADE_UP
from ferry.clusters.net.failures import granting
from ferry.config import Cluster, Flow
from ferry.permissions.required import group_covers, resource_of, topic_covers
from ferry.permissions.rights import Resource
from ferry.policy.name_covers import Cover


@dataclass(frozen=True)
class Hidden:
    """A name that the user may not see, or a prefix of such names (with a star). `needed`: the flow names it."""

    name: str
    problem: str
    needed: bool = True


def hidden_topics(flow: Flow, source: ClusterAdmin, seen: Collection[str], copied: Iterable[str]) -> tuple[Hidden, ...]:
    """Topics of the flow that are not in `seen` because the source hides them; `copied`: topics of earlier runs."""
    rules, known, heartbeats = flow.topic_rules, frozenset(seen), {flow.policy.heartbeats_topic()}
    literal = {name for name in frozenset(copied) - known if rules.why_not(name) is None}
    literal |= heartbeats - known if rules.heartbeats else set()
    wanted = _to_ask(AclResource.TOPIC, topic_covers(flow), known) | {name: Resource(AclResource.TOPIC, name) for name in literal}
    asked = {name: resource for name, resource in wanted.items() if name.endswith(MADE_UP) or rules.why_not(name) is None}
    problems = {name: _problem(flow.source, asked[name], "Read", ", and DescribeConfigs") for name in source.topics_that(HIDDEN, asked)}
    unneeded = heartbeats - set(flow.topics)
    return tuple(Hidden(_short(name), problem, name not in unneeded) for name, problem in problems.items())


def groups_to_ask(flow: Flow, seen: frozenset[str]) -> Mapping[str, Resource]:
    """Consumer groups to ask for, each with the resource that it stands for (pure)."""
    return _to_ask(AclResource.GROUP, group_covers(flow), seen)


def hidden_group(cluster: Cluster, name: str, resource: Resource) -> Hidden:
    """The problem of a group that the user may not describe."""
    return Hidden(_short(name), _problem(cluster, resource, "Describe"))


def _to_ask(kind: AclResource, covers: Iterable[Cover], seen: frozenset[str]) -> dict[str, Resource]:
    unseen = [cover for cover in covers if not any(cover.covers(Cover(name)) or cover.text == name for name in seen)]
    return {f"{cover.text}{MADE_UP}" if cover.open else cover.text: resource_of(kind, cover) for cover in unseen}


def _short(name: str) -> str:
    return f"{name.removesuffix(MADE_UP)}*" if name.endswith(MADE_UP) else name


def _problem(cluster: Cluster, resource: Resource, right: str, besides: str = "") -> str:
    return f"{cluster.where} does not show {resource}: {granting(cluster, f'{right} on {resource}')}{besides}"
