"""What counts for the rights of a flow: names that it copies, and the name that brokers give its user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters.admin.acl_binding import AclBinding, AclPattern, AclResource
from ferry.clusters.admin.service_profiles import MSK_SERVERLESS
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow, load_config
from ferry.doctor import flow_facts
from ferry.doctor.cluster_facts import RightsFacts, names_certificates
from ferry.doctor.finding import Verdict
from ferry.doctor.flow_checks import rights_findings
from ferry.permissions.required import required_rights

pytestmark = pytest.mark.unit

ME = "User:ANONYMOUS"
NAMES = ["orders", "secret.salaries", "__consumer_offsets"]
BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class Names:
    """The administration of a cluster with topics."""

    def topic_names(self) -> list[str]:
        return NAMES


def acl(name: str, operation: str, *, deny: bool = False, pattern: AclPattern = AclPattern.LITERAL) -> AclBinding:
    return AclBinding(AclResource.TOPIC, name, pattern, ME, "*", operation, "DENY" if deny else "ALLOW")


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    path = tmp_path / "mm2.properties"
    lines = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true"]
    lines += ["A->B.topics = .*", r"A->B.topics.exclude = secret\..*, __.*", "emit.checkpoints.enabled = false"]
    path.write_text("\n".join([*lines, "sync.topic.acls.enabled = false"]) + "\n")
    return load_config(path).flows[0]


def told(flow: Flow, acls: list[AclBinding], monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], list[tuple[Verdict, str]]]:
    asked: set[str] = set()

    def gather(_: OpenCluster, existing: Iterable[str], __: Iterable[str]) -> RightsFacts:
        asked.update(existing)
        held = {name: frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"}) for name in asked}
        return RightsFacts(True, frozenset(acls), frozenset(), held)

    opened: Any = SimpleNamespace(flow=flow, source=SimpleNamespace(admin=Names()))
    monkeypatch.setattr(flow_facts, "read_rights_facts", gather)
    needed = required_rights(flow).source
    found = rights_findings("rights", flow, flow.source, needed, flow_facts.source_rights(opened, needed))
    return asked, [(entry.verdict, entry.found) for entry in found]


def test_a_denied_topic_that_the_flow_leaves_out_is_no_missing_right(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = [acl("*", "READ"), acl("*", "DESCRIBE_CONFIGS")]
    asked, found = told(flow, [*allowed, acl("secret.salaries", "ALL", deny=True)], monkeypatch)
    assert asked == {"orders"}
    assert [verdict for verdict, _ in found] == [Verdict.OK], found


def test_a_deny_on_a_part_of_a_prefix_makes_the_right_unknown(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = [acl("*", "READ"), acl("*", "DESCRIBE_CONFIGS")]
    _, found = told(flow, [*allowed, acl("secret.", "ALL", deny=True, pattern=AclPattern.PREFIXED)], monkeypatch)
    ((verdict, text),) = found
    assert (verdict, "ACLs deny it for some of these names" in text) == (Verdict.WARNING, True)
    _, found = told(flow, [*allowed, acl("*", "READ", deny=True)], monkeypatch)
    assert Verdict.FAILURE in {verdict for verdict, _ in found}


def test_the_name_that_brokers_make_of_a_certificate_is_not_known(flow: Flow) -> None:
    needed = required_rights(flow).source
    held = {"orders": frozenset({"DESCRIBE"})}
    found = list(rights_findings("rights", flow, flow.source, needed, RightsFacts(True, frozenset(), frozenset(), held, renamed=True)))
    fixes = [entry.fix for entry in found if entry.verdict is Verdict.FAILURE]
    assert fixes, "orders shows that it is missing"
    assert all("User:NAME" in fix and ME not in fix for fix in fixes)
    (warned,) = rights_findings("rights", flow, flow.source, needed, RightsFacts(True, frozenset(), frozenset(), renamed=True))
    assert (warned.verdict, "only brokers know" in warned.found) == (Verdict.WARNING, True)


@pytest.mark.parametrize(
    ("configs", "renames"),
    [
        ({}, False),
        ({"ssl.principal.mapping.rules": "DEFAULT", "principal.builder.class": BUILDER}, False),
        ({"ssl.principal.mapping.rules": None, "principal.builder.class": None}, False),
        ({"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT"}, True),
        ({"listener.name.internal.ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/"}, True),
        ({"listener.name.internal.principal.builder.class": None}, True),
        ({"principal.builder.class": "com.example.Builder"}, True),
    ],
)
def test_brokers_that_name_certificates_otherwise(configs: dict[str, str | None], renames: bool) -> None:
    assert names_certificates(configs) is renames


def test_where_a_service_decides_nobody_may_do_everything(flow: Flow) -> None:
    unseen, needed = RightsFacts(False, None, None), required_rights(flow).target
    (plain,) = rights_findings("rights", flow, flow.target, needed, unseen)
    (hidden,) = rights_findings("rights", flow, flow.target, needed, unseen, [MSK_SERVERLESS])
    assert (plain.verdict, hidden.verdict) == (Verdict.OK, Verdict.WARNING)
    assert "IAM policies decide, and Kafka's protocol does not show them" in hidden.found
