"""Whether a user has a right, by what the cluster says (pure): yes, no, or unknown.

The surest source counts first. Without an authorizer everybody may do everything. KIP-430 says what this user may do to the cluster and to
existing topics. For groups, transactional ids and names that do not exist yet there are only the ACLs (StandardAuthorizer's rules: a DENY
wins, ALL is every operation, a right can imply another). A user who may do everything to the cluster without an ACL is a super user.
"""

from collections.abc import Iterable
from enum import Enum

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.doctor.cluster_facts import RightsFacts
from ferry.permissions.rights import IMPLYING, THE_CLUSTER, Resource, Right

_EVERYTHING = {"CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
_ANYBODY = "User:*"


class Granted(Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def granted(right: Right, facts: RightsFacts, principal: str | None) -> Granted:
    """Whether `principal` (None: only brokers know it) has `right`."""
    if facts.enforced is False:
        return Granted.YES
    name, resource = right.operation.name, right.resource
    if resource.kind is AclResource.CLUSTER and facts.operations is not None:
        return Granted.YES if name in facts.operations else Granted.NO
    if resource.kind is AclResource.TOPIC:
        seen = _of_topics(name, resource, facts)
        if seen is not Granted.UNKNOWN:
            return seen
    if name == "CREATE" and facts.operations is not None and "CREATE" in facts.operations:
        return Granted.YES
    if facts.acls is None or principal is None:
        return Granted.UNKNOWN
    if is_super(facts, principal):
        return Granted.YES
    if facts.operations is None and allowed(facts.acls, principal, "DESCRIBE", THE_CLUSTER) is not Granted.YES:
        return Granted.UNKNOWN  # the user sees ACLs, and no ACL allows that: there may be no authorizer
    return allowed(facts.acls, principal, name, resource)


def is_super(facts: RightsFacts, principal: str) -> bool:
    """Whether the user may do everything to the cluster without an ACL."""
    if facts.operations is None or facts.acls is None or not facts.operations >= _EVERYTHING:
        return False
    return not any(entry.resource is AclResource.CLUSTER and entry.principal in {principal, _ANYBODY} for entry in facts.acls)


def allowed(acls: Iterable[AclBinding], principal: str, operation: str, resource: Resource) -> Granted:
    """What the ACLs say about all names of `resource`. An ACL of another host counts as if it were for this host.

    If a DENY covers only some of these names, the answer is unknown: nobody knows whether one of them is needed.
    """
    own = [entry for entry in acls if entry.resource is resource.kind and entry.principal in {principal, _ANYBODY}]
    denied = [entry for entry in own if entry.permission == "DENY" and entry.operation in {operation, "ALL"}]
    enough = {operation, "ALL"} | IMPLYING.get(operation, set())
    if any(_pattern(entry).covers(resource) for entry in denied):
        return Granted.NO
    if not any(entry.permission == "ALLOW" and entry.operation in enough and _pattern(entry).covers(resource) for entry in own):
        return Granted.NO
    return Granted.UNKNOWN if any(resource.covers(_pattern(entry)) for entry in denied) else Granted.YES


def _of_topics(name: str, resource: Resource, facts: RightsFacts) -> Granted:
    """The answer by existing topics; they seldom include all names of a prefix."""
    one = resource.pattern is AclPattern.LITERAL and not resource.is_everything
    if one and resource.name in facts.hidden:
        return Granted.NO
    if name == "CREATE":
        return Granted.YES if one and resource.name in facts.topics else Granted.UNKNOWN
    found = {topic: held for topic, held in facts.topics.items() if resource.covers(Resource(AclResource.TOPIC, topic))}
    if any(name not in held for held in found.values()):
        return Granted.NO
    return Granted.YES if one and found else Granted.UNKNOWN


def _pattern(entry: AclBinding) -> Resource:
    return Resource(entry.resource, entry.name, entry.pattern)
