"""ACLs of the source's topics on the target: MirrorSourceConnector.syncTopicAcls, and the flow's own settings on top.

By default Ferry copies only ACLs of literal topic names that the flow would copy, and renames them like the topic. It leaves ALLOW WRITE
out and turns ALLOW ALL into ALLOW READ, because only the flow writes to remote topics. It copies every DENY. The topic need not exist.
Whole bindings are compared, and only missing ones are created.

Ferry owns only the ACLs that it created. It records them in the flow's state topic afterwards. If Ferry is killed in between, it does not
own the ACL, which stays. An owned ACL is surplus if no source ACL asks for it any more and every source ACL that last asked for it is gone.
So leaving a topic out of the flow takes no rights away. Ferry removes only recorded ACLs, and only with `ferry.sync.acls.remove=true`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.clusters.admin.acl_binding import OPERATIONS, PERMISSIONS, AclBinding, AclPattern, AclResource
from ferry.clusters.admin.acls import read_acls
from ferry.clusters.logs.internal_producer import append_records
from ferry.config import Cluster, Flow
from ferry.config.settings import AclSettings
from ferry.errors import FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import OwnedAcl, encode_state
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.ledger.topics import ensure_internal_topics
from ferry.policy.filters import NameRule
from ferry.policy.selection import TopicRules
from ferry.syncs.sync_scope import sync_scope

ANYTHING = "*"
_PROBE = "0"  # appended to a prefix, it makes a topic name, from which the policy makes a remote name
Problems = dict[AclBinding, "FerryError"]


@dataclass(frozen=True)
class AclRules:
    """The settings that decide about a flow's ACLs. `copied`: the source topics that it copies today."""

    topics: TopicRules
    groups: NameRule
    settings: AclSettings = field(default_factory=AclSettings)
    copied: Collection[str] = ()


@dataclass(frozen=True)
class AclPlan:
    """What to do about ACLs of the target. `missing` and `renewed` are as Ferry will own them."""

    missing: tuple[OwnedAcl, ...] = ()  # to create
    surplus: tuple[AclBinding, ...] = ()  # Ferry owns them, and no source ACL asks for them
    renewed: tuple[OwnedAcl, ...] = ()  # Ferry owns them, and other source ACLs ask for them than before
    void: tuple[AclBinding, ...] = ()  # Ferry owns them, and they no longer exist
    skipped: tuple[tuple[AclBinding, str], ...] = ()  # (source ACL, reason)
    present: int = 0  # how many existed already


@dataclass(frozen=True)
class _NoImage:
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
    every = [OwnedAcl(binding, tuple(sources)) for binding, sources in sorted(wanted.items())]
    missing = tuple(acl for acl in every if acl.binding not in there)
    surplus = tuple(
        binding for binding, sources in sorted(owned.items()) if binding in there and binding not in wanted and here.isdisjoint(sources)
    )
    renewed = tuple(acl for acl in every if acl.binding in there and set(owned.get(acl.binding, acl.sources)) != set(acl.sources))
    void = tuple(binding for binding in sorted(owned) if binding not in there)
    return AclPlan(missing, surplus, renewed, void, tuple(skipped), len(wanted) - len(missing))


def image_of(binding: AclBinding, rules: AclRules) -> AclBinding | _NoImage:
    """The ACL of the target for a source ACL, or why it is not copied."""
    if binding.operation not in OPERATIONS or binding.permission not in PERMISSIONS:
        return _NoImage(f"Ferry's client cannot write {binding.permission} {binding.operation}")
    match binding.resource:
        case AclResource.TOPIC:
            return _of_topic(binding, rules)
        case AclResource.GROUP if not rules.settings.groups:
            return _NoImage("ACLs of groups are copied with ferry.sync.acls.groups=true")
        case AclResource.GROUP:
            reason = rules.groups.why_not(binding.name) if binding.pattern is AclPattern.LITERAL else None
            return binding if reason is None else _NoImage(reason)
        case AclResource.TRANSACTIONAL_ID if rules.settings.transactional_ids:
            return binding
        case AclResource.TRANSACTIONAL_ID:
            return _NoImage("ACLs of transactional ids are copied with ferry.sync.acls.transactional.ids=true")
    return _NoImage("it is about the cluster itself")


def _of_topic(binding: AclBinding, rules: AclRules) -> AclBinding | _NoImage:
    literal = binding.pattern is AclPattern.LITERAL
    if not literal and not rules.settings.prefixed:
        return _NoImage("ACLs of prefixed topic names are copied with ferry.sync.acls.prefixed=true")
    drops = rules.settings.write == "drop" and binding.permission == "ALLOW"
    if drops and binding.operation == "WRITE":
        return _NoImage("only the flow writes to remote topics; ferry.sync.acls.write=keep copies it")
    reason = rules.topics.why_not(binding.name) if literal else None
    if reason is not None:
        return _NoImage(reason)
    name = rules.topics.remote_topic(binding.name) if literal else _prefix(binding.name, rules)
    if isinstance(name, _NoImage):
        return name
    return replace(binding, name=name, operation="READ" if drops and binding.operation == "ALL" else binding.operation)


def _prefix(prefix: str, rules: AclRules) -> str | _NoImage:
    """Rights reach no further than the flow: at least one of its topics must have the prefix."""
    if not any(topic.startswith(prefix) for topic in rules.copied):
        return _NoImage("no topic that the flow copies begins with this prefix")
    probe = rules.topics.remote_topic(prefix + _PROBE)
    return probe.removesuffix(_PROBE) if probe.endswith(_PROBE) else _NoImage("the replication policy does not keep prefixes")


def sync_acls(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Create the ACLs that are missing on the target. NotAuthorized without Describe on either cluster, ClusterUnreachable, ConfigError."""
    flow = opened.flow
    here = read_acls(opened.source)
    if here is None:
        return _without_authorizer(flow.source, "there are no ACLs to copy")
    there = read_acls(opened.target, to_alter=not (dry_run or flow.acls.report_only))
    if there is None:
        return _without_authorizer(flow.target, "it takes no ACLs")
    scope = sync_scope(opened)
    rules = AclRules(flow.topic_rules, flow.group_filter, flow.acls, frozenset(topic for topic, _ in scope.pairs))
    plan = plan_acls(here, there, {acl.binding: acl.sources for acl in scope.state.acls.values()}, rules)
    problems = {} if dry_run or flow.acls.report_only else _apply(opened, plan)
    return _outcome(flow, plan, problems, here)


def _apply(opened: OpenFlow, plan: AclPlan) -> Problems:
    flow, target = opened.flow, opened.target.admin
    problems = target.create_acls(wanted.binding for wanted in plan.missing)
    owned = [acl for acl in (*plan.missing, *plan.renewed) if acl.binding not in problems]
    records: list[tuple[bytes, bytes | None]] = [encode_state(acl) for acl in owned]
    gone = set(plan.void) - {acl.binding for acl in owned}
    if flow.acls.remove:
        refused = target.delete_acls(plan.surplus)
        gone |= set(plan.surplus) - set(refused)
        problems |= refused
    records += [(encode_state(OwnedAcl(binding))[0], None) for binding in sorted(gone)]
    if records:
        ensure_internal_topics(flow, target)
        append_records(opened.target, {flow.state_topic: records})
        opened.anew()
    return problems


def _outcome(flow: Flow, plan: AclPlan, problems: Problems, source: Collection[AclBinding]) -> SyncOutcome:
    changes = [_creation(wanted) for wanted in plan.missing if wanted.binding not in problems]
    removed = [binding for binding in plan.surplus if flow.acls.remove and binding not in problems]
    changes += [Change(f"ACL {binding}", "delete", reason="Ferry created it, and the source's ACL is gone") for binding in removed]
    skipped = [Skipped(f"ACL {binding}", reason) for binding, reason in plan.skipped]
    if flow.acls.report_only:
        skipped += [Skipped(change.what, f"to {change.action}: {change.reason}; ferry.sync.acls.report.only=true") for change in changes]
        changes = []
    if not flow.acls.remove:
        reason = "Ferry created it, and the source's ACL is gone: ferry.sync.acls.remove=true removes it"
        skipped += [Skipped(f"ACL {binding}", reason) for binding in plan.surplus]
    failed = [SyncFailure.of(f"ACL {binding}", problem) for binding, problem in sorted(problems.items())]
    counts = {"source": len(source), "present": plan.present, "missing": len(plan.missing), "surplus": len(plan.surplus)}
    return SyncOutcome(tuple(changes), tuple(skipped), tuple(failed), counts=counts)


def _creation(wanted: OwnedAcl) -> Change:
    reasons = [f"the source has {source}" for source in wanted.sources]
    if any(source.operation != wanted.binding.operation for source in wanted.sources):
        reasons.append("ALL becomes READ: only the flow writes to remote topics")
    if any(source.name == ANYTHING != wanted.binding.name for source in wanted.sources):
        reasons.append(f"{wanted.binding.name} is no wildcard on the target, as under MirrorMaker 2")
    return Change(f"ACL {wanted.binding}", "create", reason="; ".join(reasons))


def _without_authorizer(cluster: Cluster, consequence: str) -> SyncOutcome:
    notice = f"cluster {cluster.alias} has no authorizer: {consequence}; sync.topic.acls.enabled=false leaves this sync out"
    return SyncOutcome(notices=(notice,))
