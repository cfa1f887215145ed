"""The topics and groups of a flow as resources of ACLs: names that its filters can match, and their remote names (pure).

Custom filters and policies may match or give any name, so they need rights on every name.
"""

import re
from collections.abc import Iterable

from ferry.clusters.acl_binding import AclPattern, AclResource
from ferry.config import Flow
from ferry.permissions.model import ANYTHING, Resource
from ferry.permissions.names import Cover, covering
from ferry.policy.custom_classes import is_custom
from ferry.policy.naming import is_ferry_group

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_START = re.compile(r"[a-zA-Z0-9._-]{0,249}")


def topic(name: str) -> Resource:
    return Resource(AclResource.TOPIC, name)


def topics_beginning(prefix: str) -> Resource:
    """Every topic whose name begins with `prefix`; every topic if it is empty."""
    return resource_of(AclResource.TOPIC, Cover(prefix, open=True))


def source_topics(flow: Flow) -> tuple[Resource, ...]:
    """Resources that cover every topic that the flow can copy, including heartbeats."""
    rules = flow.topic_rules
    covers = [cover for cover in topic_covers(flow) if cover.open or rules.why_not(cover.text) is None]
    heartbeats = flow.policy.heartbeats_topic()
    found = [resource_of(AclResource.TOPIC, cover) for cover in covers]
    return (*found, *((topic(heartbeats),) if rules.heartbeats else ()))


def remote_topics(flow: Flow) -> tuple[Resource, ...]:
    """Resources that cover the remote topics of those."""
    return tuple(dict.fromkeys(_remote(flow, resource) for resource in source_topics(flow)))


def topic_covers(flow: Flow) -> tuple[Cover, ...]:
    """Covers for the valid topic names that `topics` can match."""
    if is_custom(flow.mirroring.topic_filter_class):
        return (Cover("", open=True, exact=False),)
    return tuple(cover for cover in covering(flow.topics) if (_TOPIC_START if cover.open else _TOPIC_NAME).fullmatch(cover.text))


def group_covers(flow: Flow) -> tuple[Cover, ...]:
    """Covers for the names that `groups` can match."""
    if is_custom(flow.mirroring.group_filter_class):
        return (Cover("", open=True, exact=False),)
    accepted = flow.group_filter
    found = covering(flow.mirroring.groups)
    return tuple(cover for cover in found if cover.open or (accepted.why_not(cover.text) is None and not is_ferry_group(cover.text)))


def groups(flow: Flow) -> tuple[Resource, ...]:
    """Resources that cover every group that the flow checkpoints or syncs."""
    return tuple(resource_of(AclResource.GROUP, cover) for cover in group_covers(flow))


def inexact(flow: Flow) -> Iterable[str]:
    """Where ACLs cannot express a filter exactly, for people."""
    for key, kind, covers in (("topics", AclResource.TOPIC, topic_covers(flow)), ("groups", AclResource.GROUP, group_covers(flow))):
        for cover in covers:
            if not cover.exact and not cover.open:
                yield f"{key}: {cover.text} is taken for one name, though its dots match any character"
            elif not cover.exact:
                yield f"{key}: no ACL says just this; {resource_of(kind, cover)} is the least that covers it"
            elif cover.open:
                yield f"{key}: {resource_of(kind, cover)} covers names too that {key}.exclude leaves out, or that are never copied"


def _remote(flow: Flow, resource: Resource) -> Resource:
    if resource.pattern is AclPattern.LITERAL and not resource.is_everything:
        return topic(flow.policy.format_remote_topic(flow.source.alias, resource.name))
    if is_custom(flow.replication_policy_class):
        return topic(ANYTHING)
    prefix = "" if resource.is_everything else resource.name
    return topics_beginning(flow.policy.format_remote_topic(flow.source.alias, prefix) if flow.policy.renames else prefix)


def resource_of(kind: AclResource, cover: Cover) -> Resource:
    """The resource of an ACL for `cover`."""
    if not cover.open:
        return Resource(kind, cover.text)
    return Resource(kind, cover.text, AclPattern.PREFIXED) if cover.text else Resource(kind, ANYTHING)
