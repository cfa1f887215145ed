"""Which ACLs the target gets (pure): MirrorSourceConnector.syncTopicAcls, and the flow's own settings on top.

By default Ferry copies only ACLs of literal topic names that the flow would copy, and renames them like the topic. It leaves ALLOW WRITE
out and turns ALLOW ALL into ALLOW READ, because only the flow writes to remote topics. It copies every DENY. The topic need not exist.
Whole bindings are compared, so an ACL that exists is not written again.

Ferry owns only the ACLs that it created. One of them is surplus when no source ACL asks for it any more and every source ACL that last
asked for it is gone. So leaving a topic out of the flow takes no rights away.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.clusters.acl_binding import OPERATIONS, PERMISSIONS, AclBinding, AclPattern, AclResource
from ferry.config.settings import AclSettings
from ferry.policy.filters import NameRule
from ferry.policy.selection import TopicRules

ANYTHING = "*"
# Appended to a prefix, it makes a topic name, from which the policy makes a remote name.
_PROBE = "0"


@dataclass(frozen=True)
class AclRules:
    """The settings that decide about a flow's ACLs. `copied`: the source topics that it copies today."""

    topics: TopicRules
    groups: NameRule
    settings: AclSettings = field(default_factory=AclSettings)
    copied: Collection[str] = ()


@dataclass(frozen=True)
class WantedAcl:
    """An ACL for the target, and the source's ACLs that ask for it."""

    binding: AclBinding
    sources: tuple[AclBinding, ...]


@dataclass(frozen=True)
class AclPlan:
    """`missing`: to create. Of the ACLs that Ferry owns, `surplus`: no source ACL asks for it; `renewed`: other source ACLs ask for it than
    before; `void`: it does not exist any more.

    `skipped`: (source ACL, reason). `present`: how many existed already.
    """

    missing: tuple[WantedAcl, ...] = ()
    surplus: tuple[AclBinding, ...] = ()
    renewed: tuple[WantedAcl, ...] = ()
    void: tuple[AclBinding, ...] = ()
    skipped: tuple[tuple[AclBinding, str], ...] = ()
    present: int = 0


@dataclass(frozen=True)
class _NotCopied:
    """A source ACL that is not copied."""

    reason: str


def plan_acls(
    source: Collection[AclBinding], target: Collection[AclBinding], owned: Mapping[AclBinding, Collection[AclBinding]], rules: AclRules
) -> AclPlan:
    """Compare both sides. `owned`: what Ferry created on the target, with the source ACLs that last asked for it."""
    wanted: dict[AclBinding, list[AclBinding]] = {}
    skipped = []
    for binding in sorted(source):
        image = image_of(binding, rules)
        if isinstance(image, AclBinding):
            wanted.setdefault(image, []).append(binding)
        else:
            skipped.append((binding, image.reason))
    here, there = frozenset(source), frozenset(target)
    every = [WantedAcl(binding, tuple(sources)) for binding, sources in sorted(wanted.items())]
    missing = tuple(acl for acl in every if acl.binding not in there)
    surplus = tuple(
        binding for binding, sources in sorted(owned.items()) if binding in there and binding not in wanted and here.isdisjoint(sources)
    )
    renewed = tuple(acl for acl in every if acl.binding in there and set(owned.get(acl.binding, acl.sources)) != set(acl.sources))
    void = tuple(binding for binding in sorted(owned) if binding not in there)
    return AclPlan(missing, surplus, renewed, void, tuple(skipped), len(wanted) - len(missing))


def image_of(binding: AclBinding, rules: AclRules) -> AclBinding | _NotCopied:
    """What a source ACL becomes on the target, or why it is not copied."""
    if binding.operation not in OPERATIONS or binding.permission not in PERMISSIONS:
        return _NotCopied(f"Ferry's client cannot write {binding.permission} {binding.operation}")
    match binding.resource:
        case AclResource.TOPIC:
            return _of_topic(binding, rules)
        case AclResource.GROUP:
            return _of_group(binding, rules)
        case AclResource.TRANSACTIONAL_ID if rules.settings.transactional_ids:
            return binding
        case AclResource.TRANSACTIONAL_ID:
            return _NotCopied("ACLs of transactional ids are copied with ferry.sync.acls.transactional.ids=true")
    return _NotCopied("it is about the cluster itself")


def _of_topic(binding: AclBinding, rules: AclRules) -> AclBinding | _NotCopied:
    literal = binding.pattern is AclPattern.LITERAL
    if not literal and not rules.settings.prefixed:
        return _NotCopied("ACLs of prefixed topic names are copied with ferry.sync.acls.prefixed=true")
    drops = rules.settings.write == "drop" and binding.permission == "ALLOW"
    if drops and binding.operation == "WRITE":
        return _NotCopied("only the flow writes to remote topics; ferry.sync.acls.write=keep copies it")
    name = _literal_name(binding.name, rules) if literal else _prefix(binding.name, rules)
    if isinstance(name, _NotCopied):
        return name
    return replace(binding, name=name, operation="READ" if drops and binding.operation == "ALL" else binding.operation)


def _literal_name(name: str, rules: AclRules) -> str | _NotCopied:
    reason = rules.topics.why_not(name)
    return rules.topics.remote_topic(name) if reason is None else _NotCopied(reason)


def _prefix(prefix: str, rules: AclRules) -> str | _NotCopied:
    """Rights reach no further than the flow: at least one of its topics must have the prefix."""
    if not any(topic.startswith(prefix) for topic in rules.copied):
        return _NotCopied("no topic that the flow copies begins with this prefix")
    probe = rules.topics.remote_topic(prefix + _PROBE)
    return probe.removesuffix(_PROBE) if probe.endswith(_PROBE) else _NotCopied("the replication policy does not keep prefixes")


def _of_group(binding: AclBinding, rules: AclRules) -> AclBinding | _NotCopied:
    if not rules.settings.groups:
        return _NotCopied("ACLs of groups are copied with ferry.sync.acls.groups=true")
    reason = rules.groups.why_not(binding.name) if binding.pattern is AclPattern.LITERAL else None
    return binding if reason is None else _NotCopied(reason)
