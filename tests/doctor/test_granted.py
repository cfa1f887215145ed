"""Whether a right is granted, by what clusters can tell."""

from __future__ import annotations

import pytest

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.doctor.cluster_facts import RightsFacts
from ferry.doctor.granted import Granted, granted
from ferry.permissions.rights import THE_CLUSTER, Operation, Resource, Right

pytestmark = pytest.mark.unit

ME, OTHER = "User:me", "User:other"
LITERAL, PREFIXED = AclPattern.LITERAL, AclPattern.PREFIXED
TOPIC, GROUP, CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
ALL_OF_CLUSTER = frozenset({"CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"})
NOTHING: frozenset[str] = frozenset()


def acl(
    name: str, operation: str, *, pattern: AclPattern = LITERAL, kind: AclResource = TOPIC, who: str = ME, deny: bool = False
) -> AclBinding:
    return AclBinding(kind, name, pattern, who, "*", operation, "DENY" if deny else "ALLOW")


def right(name: str, operation: Operation, pattern: AclPattern = LITERAL, kind: AclResource = TOPIC) -> Right:
    return Right(Resource(kind, name, pattern), operation, ("a test",))


def facts(*acls: AclBinding, operations: frozenset[str] = NOTHING, hidden: str = "", **topics: set[str]) -> RightsFacts:
    told = {name: frozenset(held) for name, held in topics.items()}
    return RightsFacts(True, frozenset(acls), operations, told, frozenset({hidden} - {""}))


def test_without_an_authorizer_everything_is_allowed() -> None:
    assert granted(right("x", Operation.WRITE), RightsFacts(False, None, None), None) is Granted.YES


@pytest.mark.parametrize(
    ("acls", "wanted", "answer"),
    [
        ([acl("x", "READ")], right("x", Operation.READ), Granted.YES),
        ([acl("x", "READ")], right("x", Operation.DESCRIBE), Granted.YES),
        ([acl("x", "ALTER_CONFIGS")], right("x", Operation.DESCRIBE_CONFIGS), Granted.YES),
        ([acl("x", "READ")], right("x", Operation.WRITE), Granted.NO),
        ([acl("x", "READ", who=OTHER)], right("x", Operation.READ), Granted.NO),
        ([acl("x", "READ", who="User:*")], right("x", Operation.READ), Granted.YES),
        ([acl("*", "ALL")], right("x", Operation.READ), Granted.YES),
        ([acl("pay", "READ", pattern=PREFIXED)], right("pay-eu", Operation.READ), Granted.YES),
        ([acl("pay", "READ", pattern=PREFIXED)], right("pay-eu", Operation.READ, PREFIXED), Granted.YES),
        ([acl("pay-eu", "READ", pattern=PREFIXED)], right("pay", Operation.READ, PREFIXED), Granted.NO),
        ([acl("pay", "READ")], right("pay", Operation.READ, PREFIXED), Granted.NO),
        ([acl("*", "ALL"), acl("x", "READ", deny=True)], right("x", Operation.READ), Granted.NO),
        ([acl("*", "ALL"), acl("pay-eu", "ALL", deny=True)], right("pay", Operation.READ, PREFIXED), Granted.UNKNOWN),
        ([acl("*", "ALL"), acl("pay-", "ALL", pattern=PREFIXED, deny=True)], right("pay", Operation.READ, PREFIXED), Granted.UNKNOWN),
        ([acl("*", "ALL"), acl("x", "READ", deny=True)], right("*", Operation.READ), Granted.UNKNOWN),
        ([acl("x", "READ", deny=True)], right("*", Operation.READ), Granted.NO),
        ([acl("*", "ALL"), acl("pa", "ALL", pattern=PREFIXED, deny=True)], right("pay", Operation.READ, PREFIXED), Granted.NO),
        ([acl("*", "ALL"), acl("*", "READ", deny=True)], right("pay", Operation.READ, PREFIXED), Granted.NO),
        ([acl("*", "ALL"), acl("y", "READ", deny=True)], right("x", Operation.READ), Granted.YES),
        ([acl("*", "ALL", kind=GROUP)], right("x", Operation.READ), Granted.NO),
        ([acl("g", "READ", kind=GROUP)], right("g", Operation.READ, kind=GROUP), Granted.YES),
    ],
)
def test_what_acls_say(acls: list[AclBinding], wanted: Right, answer: Granted) -> None:
    assert granted(wanted, facts(*acls), ME) is answer


def test_what_the_cluster_says_of_a_topic_wins_over_acls() -> None:
    told = facts(acl("x", "ALL"), x={"READ", "DESCRIBE"})
    assert granted(right("x", Operation.READ), told, ME) is Granted.YES
    assert granted(right("x", Operation.WRITE), told, ME) is Granted.NO
    assert granted(right("x", Operation.READ), facts(x={"READ"}), None) is Granted.YES, "no principal is needed"


def test_one_topic_of_a_prefix_that_lacks_a_right_is_enough() -> None:
    wanted = right("x", Operation.READ, PREFIXED)
    assert granted(wanted, facts(acl("*", "READ"), x1={"READ"}, x2={"DESCRIBE"}), ME) is Granted.NO
    assert granted(wanted, facts(acl("*", "READ"), x1={"READ"}), ME) is Granted.YES
    assert granted(wanted, RightsFacts(True, None, NOTHING, {"x1": frozenset({"READ"})}), ME) is Granted.UNKNOWN


def test_a_hidden_topic_is_not_granted() -> None:
    assert granted(right("x", Operation.READ), facts(acl("x", "READ"), hidden="x"), ME) is Granted.NO


def test_creation() -> None:
    wanted = right("x", Operation.CREATE)
    assert granted(wanted, facts(x={"DESCRIBE"}), ME) is Granted.YES, "it is there"
    assert granted(wanted, facts(), ME) is Granted.NO
    assert granted(wanted, facts(acl("x", "CREATE")), ME) is Granted.YES
    assert granted(wanted, facts(operations=frozenset({"CREATE"})), ME) is Granted.YES, "Create on the cluster is Create on every topic"


def test_the_cluster_itself() -> None:
    wanted = Right(THE_CLUSTER, Operation.DESCRIBE_CONFIGS, ("a test",))
    assert granted(wanted, facts(operations=frozenset({"DESCRIBE_CONFIGS"})), ME) is Granted.YES
    assert granted(wanted, facts(acl("kafka-cluster", "ALL", kind=CLUSTER)), ME) is Granted.NO, "the cluster's own word wins"


def test_super_users_have_no_acls() -> None:
    wanted = right("x", Operation.WRITE, PREFIXED)
    assert granted(wanted, facts(operations=ALL_OF_CLUSTER), ME) is Granted.YES
    assert granted(wanted, facts(acl("kafka-cluster", "ALL", kind=CLUSTER), operations=ALL_OF_CLUSTER), ME) is Granted.NO


@pytest.mark.parametrize("acls", [[], [acl("x", "READ", who=OTHER)], [acl("kafka-cluster", "CREATE", kind=CLUSTER)]])
def test_who_sees_acls_without_an_acl_for_it_may_need_none(acls: list[AclBinding]) -> None:
    """Brokers that have no authorizer, and neither say so nor what the user may do; or a super user of brokers before KIP-430."""
    told = RightsFacts(True, frozenset(acls), None)
    assert granted(right("y", Operation.READ), told, ME) is Granted.UNKNOWN
    shown = RightsFacts(True, frozenset([*acls, acl("kafka-cluster", "ALTER", kind=CLUSTER)]), None)
    assert granted(right("y", Operation.READ), shown, ME) is Granted.NO


def test_rights_that_are_unknown() -> None:
    unseen = RightsFacts(True, None, NOTHING)
    assert granted(right("g", Operation.READ, kind=GROUP), unseen, ME) is Granted.UNKNOWN
    assert granted(right("g", Operation.READ, kind=GROUP), facts(acl("g", "READ", kind=GROUP)), None) is Granted.UNKNOWN
