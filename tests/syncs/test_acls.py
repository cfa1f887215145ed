"""Which ACLs the target gets: MirrorMaker 2's rules, held against a second reading of them, and what Ferry adds."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.config.settings import AclSettings
from ferry.policy.filters import IncludeExclude
from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy
from ferry.policy.selection import TopicRules
from ferry.syncs.acls import AclRules, image_of, plan_acls

pytestmark = pytest.mark.unit

NAMES = ("orders", "pay", "heartbeats", "A.orders", "B.orders", "__consumer_offsets", "mm2-ferry-state.A.internal", "*", "or")
OPERATIONS = ("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "TWO_PHASE_COMMIT")
# What the flow A->B with `topics=orders.*, \*` copies of these names.
REPLICATED = {"orders": "A.orders", "heartbeats": "A.heartbeats", "*": "A.*"}
EVERYTHING = AclSettings(groups=True, prefixed=True, transactional_ids=True, write="keep")


def acl(
    name: str, operation: str = "READ", permission: str = "ALLOW", resource: AclResource = AclResource.TOPIC, **fields: object
) -> AclBinding:
    return replace(AclBinding(resource, name, AclPattern.LITERAL, "User:alice", "*", operation, permission), **fields)


def rules(settings: AclSettings | None = None, *, identity: bool = False) -> AclRules:
    policy = IdentityReplicationPolicy(".", ".", "A") if identity else DefaultReplicationPolicy(".", ".")
    topics = TopicRules("A", "B", policy, IncludeExclude("topics", ("orders.*", r"\*"), ()))
    return AclRules(
        topics, IncludeExclude("groups", (".*",), ("console-.*",)), settings or AclSettings(), frozenset({"orders", "orders-eu"})
    )


BINDINGS = st.builds(
    AclBinding,
    st.sampled_from(AclResource),
    st.sampled_from(NAMES),
    st.sampled_from(AclPattern),
    st.sampled_from(("User:alice", "User:*")),
    st.sampled_from(("*", "10.0.0.1")),
    st.sampled_from(OPERATIONS),
    st.sampled_from(("ALLOW", "DENY")),
)
SETS = st.frozensets(BINDINGS, max_size=12)
SETTINGS = st.builds(AclSettings, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(("drop", "keep")))


def mirror_maker(source: frozenset[AclBinding]) -> set[AclBinding]:
    """MirrorSourceConnector.syncTopicAcls, read again: what it hands to createAcls."""
    kept = [binding for binding in source if (binding.resource, binding.pattern) == (AclResource.TOPIC, AclPattern.LITERAL)]
    kept = [binding for binding in kept if not (binding.permission == "ALLOW" and binding.operation == "WRITE")]
    images = set()
    for binding in kept:
        if binding.name in REPLICATED and binding.operation != "TWO_PHASE_COMMIT":
            operation = "READ" if binding.permission == "ALLOW" and binding.operation == "ALL" else binding.operation
            images.add(replace(binding, name=REPLICATED[binding.name], operation=operation))
    return images


@given(SETS, SETS)
def test_the_target_has_afterwards_what_it_has_under_mirror_maker(source: frozenset[AclBinding], target: frozenset[AclBinding]) -> None:
    plan = plan_acls(source, target, {}, rules())
    created = {wanted.binding for wanted in plan.missing}
    assert created == mirror_maker(source) - target
    assert (plan.surplus, plan.void, plan.renewed) == ((), (), ())
    assert plan.present == len(mirror_maker(source) & target)


@given(SETS, SETS, SETTINGS, st.booleans())
def test_every_source_acl_is_copied_or_named(
    source: frozenset[AclBinding], target: frozenset[AclBinding], settings: AclSettings, identity: bool
) -> None:
    plan = plan_acls(source, target, {}, rules(settings, identity=identity))
    named = [binding for binding, reason in plan.skipped if reason]
    images = [image_of(binding, rules(settings, identity=identity)) for binding in source - set(named)]
    assert len(named) == len(set(named))
    assert {image for image in images if isinstance(image, AclBinding)} - target == {wanted.binding for wanted in plan.missing}
    assert all(isinstance(image, AclBinding) for image in images)


@given(SETS, SETS, st.dictionaries(BINDINGS, st.tuples(BINDINGS), max_size=6), SETTINGS)
def test_only_what_ferry_created_is_ever_surplus(
    source: frozenset[AclBinding],
    target: frozenset[AclBinding],
    owned: dict[AclBinding, tuple[AclBinding, ...]],
    settings: AclSettings,
) -> None:
    plan = plan_acls(source, target, owned, rules(settings))
    assert set(plan.surplus) <= set(owned) & target
    assert set(plan.void) == set(owned) - target
    after = (target | {wanted.binding for wanted in plan.missing}) - set(plan.surplus)
    kept = {acl.binding: acl.sources for acl in (*plan.missing, *plan.renewed)}
    again = plan_acls(source, after, {binding: asked for binding, asked in (owned | kept).items() if binding in after}, rules(settings))
    assert (again.missing, again.surplus, again.renewed, again.void) == ((), (), (), ())


def test_an_acl_is_surplus_when_all_source_acls_that_asked_for_it_are_gone() -> None:
    owned = {acl("A.orders"): (acl("orders", "ALL"), acl("orders"))}
    target = {*owned, acl("A.other")}
    assert plan_acls({acl("orders", "ALL")}, target, owned, rules()).surplus == ()
    assert plan_acls({acl("orders")}, target, owned, rules()).surplus == ()
    assert plan_acls(set(), target, owned, rules()).surplus == (acl("A.orders"),)
    excluded = replace(rules(), topics=replace(rules().topics, filter=IncludeExclude("topics", (), ())))
    assert plan_acls({acl("orders")}, target, owned, excluded).surplus == ()


def test_the_source_acls_that_ask_for_an_acl_are_kept_up_to_date() -> None:
    owned = {acl("A.orders"): (acl("orders", "ALL"),)}
    (renewed,) = plan_acls({acl("orders")}, set(owned), owned, rules()).renewed
    assert (renewed.binding, renewed.sources) == (acl("A.orders"), (acl("orders"),))


@pytest.mark.parametrize(("operation", "permission"), list(product(OPERATIONS[:-1], ("ALLOW", "DENY"))))
def test_with_write_kept_nothing_changes_but_the_name(operation: str, permission: str) -> None:
    binding = acl("orders", operation, permission)
    assert image_of(binding, rules(AclSettings(write="keep"))) == replace(binding, name="A.orders")


@pytest.mark.parametrize(("identity", "image"), [(False, "A.or"), (True, "or")])
def test_prefixes_are_renamed_as_topics_are(identity: bool, image: str) -> None:
    prefixed = acl("or", "ALL", pattern=AclPattern.PREFIXED)
    assert image_of(prefixed, rules(AclSettings(prefixed=True), identity=identity)) == replace(prefixed, name=image, operation="READ")
    assert not isinstance(image_of(replace(prefixed, operation="WRITE"), rules(AclSettings(prefixed=True))), AclBinding)


def test_a_prefix_reaches_no_further_than_the_flow() -> None:
    outside = image_of(acl("pay", pattern=AclPattern.PREFIXED), rules(EVERYTHING))
    assert getattr(outside, "reason", "") == "no topic that the flow copies begins with this prefix"


def test_under_identity_a_prefix_that_looks_like_heartbeats_stays_as_it_is() -> None:
    beating = replace(rules(EVERYTHING, identity=True), copied={"heartbeats-eu"})
    prefixed = acl("heartbeats", pattern=AclPattern.PREFIXED)
    assert image_of(prefixed, beating) == prefixed


@pytest.mark.parametrize(
    ("resource", "name", "pattern", "copied"),
    [
        (AclResource.GROUP, "billing", AclPattern.LITERAL, True),
        (AclResource.GROUP, "console-1", AclPattern.LITERAL, False),
        (AclResource.GROUP, "bill", AclPattern.PREFIXED, True),
        (AclResource.TRANSACTIONAL_ID, "t", AclPattern.LITERAL, True),
        (AclResource.CLUSTER, "kafka-cluster", AclPattern.LITERAL, False),
        (AclResource.OTHER, "User:bob", AclPattern.LITERAL, False),
    ],
)
def test_acls_of_groups_and_transactional_ids_are_copied_unchanged_when_the_flow_says_so(
    resource: AclResource, name: str, pattern: AclPattern, copied: bool
) -> None:
    binding = acl(name, "WRITE", resource=resource, pattern=pattern)
    assert (image_of(binding, rules(EVERYTHING)) == binding) is copied
    assert not isinstance(image_of(binding, rules()), AclBinding)


@given(BINDINGS)
def test_as_json(binding: AclBinding) -> None:
    assert AclBinding.of_document(binding.document()) == binding


def test_as_text() -> None:
    assert str(acl("A.orders")) == "User:alice ALLOW READ topic A.orders (literal) from *"
