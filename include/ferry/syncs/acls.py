"""ACLs of the source's topics on the target, as acl_plan.py says: only what is missing is created.

Ferry records what it created in the flow's state topic, after it was created. If Ferry is killed in between, the ACL counts as somebody
else's and stays. Ferry only ever removes recorded ACLs, and only with `ferry.sync.acls.remove=true`.
"""

from collections.abc import Collection

from ferry.clusters.acl_binding import AclBinding
from ferry.clusters.acls import AclAdmin, read_acls
from ferry.clusters.admin import ClusterAdmin
from ferry.clusters.internal_producer import append_records
from ferry.config import Cluster, Flow
from ferry.errors import FerryError
from ferry.ledger.run_report import Skipped
from ferry.ledger.state import OwnedAcl, encode_state, state_key
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.ledger.topics import ensure_internal_topics
from ferry.syncs.acl_plan import ANYTHING, AclPlan, AclRules, WantedAcl, plan_acls
from ferry.syncs.context import SyncContext, sync_scope

REPORT_ONLY = "ferry.sync.acls.report.only=true"
Problems = dict[AclBinding, "FerryError"]


def sync_acls(context: SyncContext) -> SyncOutcome:
    """Create the ACLs that are missing on the target. NotAuthorized without Describe on either cluster, ClusterUnreachable, ConfigError."""
    flow, dry_run = context.flow, context.dry_run
    here = read_acls(flow.source)
    if here is None:
        return _without_authorizer(flow.source, "there are no ACLs to copy")
    there = read_acls(flow.target, to_alter=not (dry_run or flow.acls.report_only))
    if there is None:
        return _without_authorizer(flow.target, "it takes no ACLs")
    with ClusterAdmin(flow.source) as source, AclAdmin(flow.target) as target:
        scope = sync_scope(context, source, target)
        rules = AclRules(flow.topic_rules, flow.group_filter, flow.acls, frozenset(topic for topic, _ in scope.pairs))
        plan = plan_acls(here, there, {acl.binding: acl.sources for acl in scope.state.acls.values()}, rules)
        problems = {} if dry_run or flow.acls.report_only else _apply(flow, plan, target)
    return _outcome(flow, plan, problems, here)


def _apply(flow: Flow, plan: AclPlan, target: AclAdmin) -> Problems:
    problems = target.create_acls(wanted.binding for wanted in plan.missing)
    owned = [OwnedAcl(acl.binding, acl.sources) for acl in (*plan.missing, *plan.renewed) if acl.binding not in problems]
    records: list[tuple[bytes, bytes | None]] = [encode_state(acl) for acl in owned]
    gone = set(plan.void) - {acl.binding for acl in owned}
    if flow.acls.remove:
        refused = target.delete_acls(plan.surplus)
        gone |= set(plan.surplus) - set(refused)
        problems |= refused
    records += [(state_key(OwnedAcl(binding)), None) for binding in sorted(gone)]
    if records:
        ensure_internal_topics(flow, target)
        append_records(flow.target, flow.state_topic, records)
    return problems


def _outcome(flow: Flow, plan: AclPlan, problems: Problems, source: Collection[AclBinding]) -> SyncOutcome:
    changes = [_creation(wanted) for wanted in plan.missing if wanted.binding not in problems]
    removed = [binding for binding in plan.surplus if flow.acls.remove and binding not in problems]
    changes += [Change(f"ACL {binding}", "delete", reason="Ferry created it, and the source's ACL is gone") for binding in removed]
    skipped = [Skipped(f"ACL {binding}", reason) for binding, reason in plan.skipped]
    if flow.acls.report_only:
        skipped += [Skipped(change.what, f"to {change.action}: {change.reason}; {REPORT_ONLY}") for change in changes]
        changes = []
    if not flow.acls.remove:
        reason = "Ferry created it, and the source's ACL is gone: ferry.sync.acls.remove=true removes it"
        skipped += [Skipped(f"ACL {binding}", reason) for binding in plan.surplus]
    failed = [SyncFailure.of(f"ACL {binding}", problem) for binding, problem in sorted(problems.items())]
    counts = {"source": len(source), "present": plan.present, "missing": len(plan.missing), "surplus": len(plan.surplus)}
    return SyncOutcome("acls", tuple(changes), tuple(skipped), tuple(failed), counts=counts)


def _creation(wanted: WantedAcl) -> Change:
    reasons = [f"the source has {source}" for source in wanted.sources]
    if any(source.operation != wanted.binding.operation for source in wanted.sources):
        reasons.append("ALL becomes READ: only the flow writes to remote topics")
    if any(source.name == ANYTHING != wanted.binding.name for source in wanted.sources):
        reasons.append(f"{wanted.binding.name} is no wildcard on the target, as under MirrorMaker 2")
    return Change(f"ACL {wanted.binding}", "create", reason="; ".join(reasons))


def _without_authorizer(cluster: Cluster, consequence: str) -> SyncOutcome:
    notice = f"cluster {cluster.alias} has no authorizer: {consequence}; sync.topic.acls.enabled=false leaves this sync out"
    return SyncOutcome("acls", notices=(notice,))
