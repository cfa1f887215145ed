"""Exactly the rights that the enabled features of a flow need (pure): read-only on the source, unless the config asks to write there.

Each right names what fails without it. A test removes one right after the other. If nothing fails then, the test fails: the right does not
belong here. Kafka defines which request needs which right (KafkaApis, and the table "Operations and Resources on Protocols" of its security
page).
Describe on the cluster is not needed: DescribeCluster gives the id without it, and listings show what the user may describe.

The resources are the narrowest ones that cover the names that the filters can match, and their remote names. Custom filters and policies
may match or give any name, so they need rights on every name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ferry.clusters.admin.acl_binding import AclPattern, AclResource
from ferry.config import Cluster, Flow
from ferry.config.mm2_topics import mm2_topics
from ferry.config.settings import REROUTE
from ferry.permissions.rights import ANYTHING, THE_CLUSTER, Operation, Resource, Right, least
from ferry.policy.custom_classes import is_custom
from ferry.policy.java_expression import names_matched
from ferry.policy.java_tokens import UnsupportedExpression
from ferry.policy.name_covers import UNKNOWN, Cover
from ferry.policy.naming import LONGEST_TOPIC, STATE_PREFIX, TOPIC_CHARACTERS, is_ferry_group, ledger_topic, runs_topic, state_topic

READ, WRITE, CREATE, ALTER = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.ALTER
DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
_PLAIN = re.compile(r"[\w.-]+")
_TOPIC_NAME = re.compile(f"{TOPIC_CHARACTERS}{{1,{LONGEST_TOPIC}}}")
_TOPIC_START = re.compile(f"{TOPIC_CHARACTERS}{{0,{LONGEST_TOPIC}}}")


@dataclass(frozen=True)
class RequiredRights:
    """The rights of a flow on each side. `notes`, for people: where the rights are wider than the filters, and what is left out."""

    source: tuple[Right, ...]
    target: tuple[Right, ...]
    notes: tuple[str, ...] = ()


def required_rights(flow: Flow, *, recovery: bool = False) -> RequiredRights:
    """The rights of one flow; with `recovery` also those of failover, failback and cut-over. ConfigError for a bad custom class."""
    source, target = list(_on_source(flow)), list(_on_target(flow))
    if flow.exactly_once:
        transactional_ids = Resource(AclResource.TRANSACTIONAL_ID, flow.transactional_id(""), AclPattern.PREFIXED)
        target.append(Right(transactional_ids, WRITE, ("transactions", "fencing")))
    if recovery:
        source += [Right(found, READ, ("failback: writes group offsets",)) for found in groups(flow)]
        target += [Right(found, READ, ("failover: writes group offsets",)) for found in groups(flow)]
    if flow.mirroring.sync_topic_acls_enabled:
        source.append(Right(THE_CLUSTER, DESCRIBE, ("ACL sync",)))
        target.append(Right(THE_CLUSTER, DESCRIBE if flow.acls.report_only else ALTER, ("ACL sync",)))
    return RequiredRights(least(source), least(target), tuple(_notes(flow)))


def rights_on_topic(flow: Flow, name: str) -> str:
    """All rights of the flow on a topic of the target, as a text: `Alter, AlterConfigs, Create, Read, Write`."""
    rights = required_rights(flow).target
    found = [Right(topic(name), right.operation, ()) for right in rights if right.resource.covers(topic(name))]
    return ", ".join(sorted(right.operation.value for right in least(found)))


def _on_source(flow: Flow) -> Iterator[Right]:
    for found in source_topics(flow):
        yield Right(found, READ, ("the copy",))
        yield Right(found, DESCRIBE_CONFIGS, ("configs of remote topics", "ferry status"))
    for found in groups(flow) if _translates(flow) else ():
        yield Right(found, DESCRIBE, ("checkpoints", "group offsets", "ferry translate"))
    if flow.mirroring.publish_source_group:
        published = Resource(AclResource.GROUP, flow.mirroring.publish_source_group)
        yield Right(published, READ, ("ferry.publish.source.group: commits offsets",))
    yield from _mm2_topics(flow, flow.source)
    if flow.reverse_heartbeat == "asked":
        heartbeats = flow.policy.heartbeats_topic()
        yield from _rights(topic(heartbeats), (CREATE, WRITE), f"{flow.reverse_name}.emit.heartbeats.enabled=true")
    # If topics keep their names, the opposite flow's ledger at the source says which records came from the target.
    if not flow.policy.renames:
        yield Right(topic(ledger_topic(flow.target.alias)), READ, ("loop guard: the other direction's ledger",))
        yield Right(topics_beginning(STATE_PREFIX), READ, ("loop guard: who else writes to the source",))


def _on_target(flow: Flow) -> Iterator[Right]:
    configs = ALTER_CONFIGS if flow.mirroring.sync_topic_configs_enabled else DESCRIBE_CONFIGS
    policy, alias = flow.policy, flow.source.alias
    heartbeats = topic(policy.format_remote_topic(alias, policy.heartbeats_topic()))
    for found in remote_topics(flow):
        yield Right(found, CREATE, ("creation",))
        yield Right(found, WRITE, ("the copy",))
        yield Right(found, READ, ("positions (group offsets of remote topics)", "group offsets", "ferry verify"))
        if found != heartbeats:  # they have one partition
            yield Right(found, ALTER, ("more partitions",))
        yield Right(found, configs, ("config sync",) if configs is ALTER_CONFIGS else ("their limits",))
    for name in flow.handling.reroute if flow.handling.message_handler else ():
        yield Right(topic(name), WRITE, (REROUTE,))
    yield from _rights(topic(ledger_topic(alias)), (CREATE, READ, WRITE, DESCRIBE_CONFIGS), "the ledger")
    yield from _rights(topic(state_topic(alias)), (CREATE, WRITE, DESCRIBE_CONFIGS), "positions and claims")
    yield Right(topics_beginning(STATE_PREFIX), READ, ("positions and claims of all flows",))
    yield from _rights(topic(runs_topic(alias)), (CREATE, READ, WRITE), "run reports")
    yield from _mm2_topics(flow, flow.target)
    yield Right(Resource(AclResource.GROUP, flow.position_group), READ, ("positions",))
    for found in groups(flow) if _translates(flow) else ():
        if flow.mirroring.sync_group_offsets_enabled:
            yield Right(found, READ, ("group offsets",))
        else:
            yield Right(found, DESCRIBE, ("ferry explain", "ferry translate --reverse"))


def _mm2_topics(flow: Flow, cluster: Cluster) -> Iterator[Right]:
    for found in mm2_topics(flow):
        if found.cluster is cluster:
            yield from _rights(topic(found.name), (CREATE, READ, WRITE) if found.read_back else (CREATE, WRITE), found.holds)


def _rights(resource: Resource, operations: Iterable[Operation], needed_for: str) -> Iterator[Right]:
    return (Right(resource, operation, (needed_for,)) for operation in operations)


def _translates(flow: Flow) -> bool:
    return flow.mirroring.emit_checkpoints_enabled or flow.mirroring.sync_group_offsets_enabled


def _notes(flow: Flow) -> Iterator[str]:
    yield from inexact(flow)
    heartbeats = flow.policy.heartbeats_topic()
    if flow.mirroring.heartbeats_replication_enabled:
        yield f"heartbeats of clusters further away (C.{heartbeats} on {flow.source.alias}) are copied only where these rights cover them"
    if flow.reverse_heartbeat == "default":
        reverse = f"{flow.reverse_name}.emit.heartbeats.enabled"
        yield f"left out: Create and Write on topic {heartbeats} at {flow.source.alias}, for a heartbeat that {reverse}=true would ask for"
    yield (
        f"left out: DescribeConfigs on the cluster at {flow.target.alias}: with it Ferry reads the brokers' message.max.bytes, and assumes "
        "Kafka's default without it"
    )
    yield "brokers older than 2.8 also require IdempotentWrite on the cluster (KIP-679) from every producer"


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
    """Resources that cover the remote topics of every topic that the flow can copy."""
    return tuple(dict.fromkeys(_remote(flow, resource) for resource in source_topics(flow)))


def covering(elements: Sequence[str]) -> tuple[Cover, ...]:
    """The narrowest covers of every name that a filter's list matches, without overlaps; empty for an empty list.

    Expressions were checked before. A dot in an element that is a plain name (`orders.eu`) counts as a dot, because it is seldom meant as
    "any character".
    """
    plain = [element for element in elements if _PLAIN.fullmatch(element)]
    others = [element for element in elements if element not in plain]
    try:
        for element in others:
            names_matched(element)  # an open group would continue in the next element
        found = names_matched("|".join(others)) if others else ()
    except UnsupportedExpression:  # an expression that it cannot translate may match everything
        found, plain = UNKNOWN, []
    named = tuple(Cover(element, exact="." not in element) for element in plain)
    return _without_covered(cover for cover in (*found, *named) if cover.text or cover.open)


def _without_covered(covers: Iterable[Cover]) -> tuple[Cover, ...]:
    """The covers that no other one includes."""
    kept: list[Cover] = []
    # Exact ones first: if two covers are equal, the exact one stays.
    for cover in sorted(set(covers), key=lambda entry: (len(entry.text), not entry.open, not entry.exact)):
        if not any(other.covers(cover) for other in kept):
            kept.append(cover)
    return tuple(sorted(kept))


def topic_covers(flow: Flow) -> tuple[Cover, ...]:
    """Covers for the valid topic names that `topics` can match."""
    if is_custom(flow.mirroring.topic_filter_class):
        return UNKNOWN
    return tuple(cover for cover in covering(flow.topics) if (_TOPIC_START if cover.open else _TOPIC_NAME).fullmatch(cover.text))


def group_covers(flow: Flow) -> tuple[Cover, ...]:
    """Covers for the names that `groups` can match."""
    if is_custom(flow.mirroring.group_filter_class):
        return UNKNOWN
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
    if not cover.open:
        return Resource(kind, cover.text)
    return Resource(kind, cover.text, AclPattern.PREFIXED) if cover.text else Resource(kind, ANYTHING)
