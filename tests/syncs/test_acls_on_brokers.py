"""ACLs between clusters with authorizers, as Kafka's own kafka-acls shows them."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.both_clusters import both_clusters
from tests.conftest import Lab
from tests.opened import administration, carry_out, read_acls, sync_acls, sync_configs, sync_topics
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.jars import tools_jars

from ferry.clusters.admin.acl_binding import AclResource
from ferry.config import Flow, load_config
from ferry.errors import NotAuthorized
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.sandbox.jars import java
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.brokers

# `ferry` is the brokers' super user; `looker` may describe the target's ACLs but not alter them; `nobody` may do nothing.
USERS = {user: f"{user}-{secrets.token_hex(8)}" for user in ("ferry", "looker", "nobody")}
TOOL_SECONDS = 60
BY_MIRROR_MAKER = {
    "User:alice ALLOW READ topic {0} (literal) from *",
    "User:bob ALLOW READ topic {0} (literal) from 10.0.0.1",
    "User:eve DENY WRITE topic {0} (literal) from *",
}
SEGMENT_BYTES = ConfigEntry("segment.bytes", "1048576", incremental_operation=AlterConfigOpType.SET)
COMMAND = "org.apache.kafka.tools.AclCommand"

FlowFactory = Callable[..., Flow]
ConfigFile = Callable[..., Path]
Pair = tuple[SandboxCluster, SandboxCluster]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Source and target that want a login, and permissions from everybody but `ferry`."""
    directory = tmp_path_factory.mktemp("guarded")
    with both_clusters(directory, {}, users=USERS, authorizer=True) as (source, target):
        allow(target, "User:looker", "kafka-cluster", "DESCRIBE", kind=ResourceType.BROKER)
        for operation in ("DESCRIBE", "READ"):
            allow(target, "User:looker", "*", operation)
        yield source, target


@pytest.fixture
def flow_of(config_file: ConfigFile, guarded: Pair) -> FlowFactory:
    """A flow between the two: `flow_of("A->B.topics = x", source=user, target=user)`."""

    def load(*lines: str, source: str = "ferry", target: str = "ferry") -> Flow:
        logins = [line for alias, user in (("A", source), ("B", target)) for line in login(alias, user)]
        return load_config(config_file(*logins, *lines, source=guarded[0], target=guarded[1])).flows[0]

    return load


@pytest.mark.long
def test_acls_of_topics_as_under_mirror_maker(flow_of: FlowFactory, guarded: Pair) -> None:
    source, target = guarded
    topic = f"t-{secrets.token_hex(4)}"  # it need not exist
    flow = flow_of(f"A->B.topics = {topic}")
    remote = f"{flow.source.alias}.{topic}"
    allow(source, "User:alice", topic, "ALL")
    allow(source, "User:alice", topic, "WRITE")
    allow(source, "User:bob", topic, "READ", host="10.0.0.1")
    allow(source, "User:eve", topic, "WRITE", permission="DENY")
    allow(source, "User:alice", topic, "READ", pattern="PREFIXED")
    allow(source, "User:alice", f"g-{topic}", "READ", kind=ResourceType.GROUP)
    allow(source, "User:alice", "elsewhere", "READ")
    wanted = {line.format(remote) for line in BY_MIRROR_MAKER}

    before = kafka_acls(target)
    planned = sync_acls(flow, dry_run=True)
    assert {change.what.removeprefix("ACL ") for change in planned.changes} == wanted

    outcome = sync_acls(flow)
    assert outcome.changes == planned.changes
    assert {change.action for change in outcome.changes} == {"create"}
    assert kafka_acls(target) - before == wanted
    reasons = {skipped.what: skipped.reason for skipped in outcome.skipped}
    assert "ferry.sync.acls.write=keep" in reasons[f"ACL User:alice ALLOW WRITE topic {topic} (literal) from *"]
    assert "ferry.sync.acls.prefixed=true" in reasons[f"ACL User:alice ALLOW READ topic {topic} (prefixed) from *"]
    assert "ferry.sync.acls.groups=true" in reasons[f"ACL User:alice ALLOW READ group g-{topic} (literal) from *"]
    assert reasons["ACL User:alice ALLOW READ topic elsewhere (literal) from *"] == "not in the property topics"

    again = sync_acls(flow)
    assert (again.changes, again.failed, again.counts["present"]) == ((), (), 3)


def test_only_acls_of_its_own_are_removed_and_only_when_asked(flow_of: FlowFactory, guarded: Pair) -> None:
    source, target = guarded
    topic = f"t-{secrets.token_hex(4)}"
    lines = (f"A->B.topics = {topic}",)
    remote = f"{flow_of(*lines).source.alias}.{topic}"
    allow(target, "User:old", remote, "READ")
    for user in ("User:old", "User:new", "User:stays"):
        allow(source, user, topic, "READ")
    assert texts(sync_acls(flow_of(*lines))) == {f"create ACL {line(user, remote)}" for user in ("User:new", "User:stays")}
    settle(target)
    for user in ("User:old", "User:new"):
        forbid(source, user, topic)

    kept = sync_acls(flow_of(*lines))
    assert texts(kept) == set()
    (left,) = [skipped for skipped in kept.skipped if remote in skipped.what]
    assert left.what == f"ACL {line('User:new', remote)}"
    assert "ferry.sync.acls.remove=true" in left.reason

    removing = flow_of(*lines, "ferry.sync.acls.remove = true")
    assert texts(sync_acls(removing, dry_run=True)) == {f"delete ACL {line('User:new', remote)}"}
    assert texts(sync_acls(removing)) == {f"delete ACL {line('User:new', remote)}"}
    assert {text for text in kafka_acls(target) if remote in text} == {line("User:old", remote), line("User:stays", remote)}

    # Somebody takes one away and gives it back: then it is theirs, though the source's goes as well.
    forbid(target, "User:stays", remote)
    forbid(source, "User:stays", topic)
    sync_acls(removing)
    allow(target, "User:stays", remote, "READ")
    assert texts(sync_acls(removing)) == set()
    assert line("User:stays", remote) in kafka_acls(target)


def test_settings_of_a_flow_decide_which_acls_are_copied(flow_of: FlowFactory, guarded: Pair) -> None:
    source, target = guarded
    topic = f"t-{secrets.token_hex(4)}"
    client = AdminClient(source.client_settings())
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    allow(source, "User:alice", topic, "ALL")
    allow(source, "User:alice", topic[:6], "READ", pattern="PREFIXED")
    allow(source, "User:alice", f"g-{topic}", "READ", kind=ResourceType.GROUP)
    allow(source, "User:alice", f"x-{topic}", "WRITE", kind=ResourceType.TRANSACTIONAL_ID)
    lines = [f"A->B.topics = {topic}", "A->B.groups = g-.*", "ferry.sync.acls.groups = true", "ferry.sync.acls.prefixed = true"]
    lines += ["ferry.sync.acls.transactional.ids = true", "ferry.sync.acls.write = keep"]
    alias = flow_of(*lines).source.alias
    before = kafka_acls(target)
    reported = sync_acls(flow_of(*lines, "ferry.sync.acls.report.only = true"))
    assert reported.changes == ()
    assert sum("ferry.sync.acls.report.only=true" in skipped.reason for skipped in reported.skipped) == reported.counts["missing"] > 0
    assert len(sync_acls(flow_of(*lines)).changes) == reported.counts["missing"]
    assert {text for text in kafka_acls(target) - before if topic[:6] in text} == {
        f"User:alice ALLOW ALL topic {alias}.{topic} (literal) from *",
        f"User:alice ALLOW READ topic {alias}.{topic[:6]} (prefixed) from *",
        f"User:alice ALLOW READ group g-{topic} (literal) from *",
        f"User:alice ALLOW WRITE transactional-id x-{topic} (literal) from *",
    }


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_user_who_may_not_see_acls(flow_of: FlowFactory, side: str) -> None:
    flow = flow_of("A->B.topics = t", **{side: "nobody"})
    # The target's are about to be altered, and whoever may alter them may describe them.
    right = {"source": "Describe", "target": "Alter"}[side]
    with pytest.raises(NotAuthorized, match=f"grant {right} on the cluster at cluster {getattr(flow, side).alias} to User:nobody"):
        sync_acls(flow)


def test_a_user_who_may_not_create_acls(flow_of: FlowFactory, guarded: Pair) -> None:
    topic = f"t-{secrets.token_hex(4)}"
    allow(guarded[0], "User:alice", topic, "READ")
    flow = flow_of(f"A->B.topics = {topic}", target="looker")
    outcome = sync_acls(flow)
    assert outcome.changes == ()
    (failure,) = outcome.failed
    assert (failure.what, failure.error) == (f"ACL {line('User:alice', f'{flow.source.alias}.{topic}')}", "NotAuthorized")
    assert "grant Alter on the cluster" in failure.problem
    with administration(flow.target) as target:
        # An ACL of a topic, because Ferry's client writes only some kinds.
        topics = [acl for acl in read_acls(flow.source) or () if acl.resource is AclResource.TOPIC]
        (problem,) = target.delete_acls(topics[:1]).values()
    assert isinstance(problem, NotAuthorized)


def test_a_topic_that_may_not_be_configured_does_not_stop_the_others(flow_of: FlowFactory, guarded: Pair) -> None:
    source, target = guarded
    topics = [f"t-{secrets.token_hex(4)}" for _ in range(3)]
    client = AdminClient(source.client_settings())
    for future in client.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result(30)
    lines = f"A->B.topics = {','.join(topics)}"
    sync_topics(flow_of(lines))
    flow = flow_of(lines, target="looker")
    open_topic, fixed, hidden = (f"{flow.source.alias}.{topic}" for topic in topics)
    allow(target, "User:looker", open_topic, "DESCRIBE_CONFIGS")
    allow(target, "User:looker", open_topic, "ALTER_CONFIGS")
    allow(target, "User:looker", fixed, "DESCRIBE_CONFIGS")
    resources = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[SEGMENT_BYTES]) for topic in topics]
    for future in client.incremental_alter_configs(resources).values():
        future.result(30)
    outcome = sync_configs(flow)
    assert [(change.what, change.detail) for change in outcome.changes] == [
        (f"topic {open_topic}", "segment.bytes: 1073741824 (Kafka's default) -> 1048576")
    ]
    problems = {failure.what: failure.problem for failure in outcome.failed}
    assert set(problems) == {f"topic {hidden}", f"topic {fixed} segment.bytes"}
    assert f"grant AlterConfigs on topic {hidden}" in problems[f"topic {hidden}"], "describing needs less, and would be refused again"
    assert f"grant AlterConfigs on topic {fixed}" in problems[f"topic {fixed} segment.bytes"]


def test_clusters_without_authorizer(lab: Lab, guarded: Pair) -> None:
    """One notice each, no failure; nothing is looked at beyond that."""
    without = lab.flow("A->B.topics = t")
    outcome = carry_out(without, SyncName.ACLS)
    (notice,) = outcome.notices
    assert f"cluster {without.source.alias} has no authorizer" in notice
    assert (outcome.changes, outcome.skipped, outcome.failed) == ((), (), ())
    half = load_config(lab.config(*login("A", "ferry"), "A->B.topics = .*", source=guarded[0], target=lab.target)).flows[0]
    (notice,) = sync_acls(half).notices
    assert f"cluster {half.target.alias} has no authorizer" in notice


def login(alias: str, user: str) -> list[str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return [
        f"{alias}.security.protocol = SASL_PLAINTEXT",
        f"{alias}.sasl.mechanism = PLAIN",
        f'{alias}.sasl.jaas.config = {module} required username="{user}" password="{USERS[user]}";',
    ]


def allow(
    cluster: SandboxCluster,
    principal: str,
    name: str,
    operation: str,
    *,
    permission: str = "ALLOW",
    host: str = "*",
    pattern: str = "LITERAL",
    kind: ResourceType = ResourceType.TOPIC,
) -> None:
    binding = AclBinding(kind, name, ResourcePatternType[pattern], principal, host, AclOperation[operation], AclPermissionType[permission])
    client = AdminClient(cluster.client_settings())
    client.create_acls([binding])[binding].result(30)
    same = AclBindingFilter(
        kind, name, ResourcePatternType[pattern], principal, host, AclOperation[operation], AclPermissionType[permission]
    )
    wait_for_acls(client, same, 1)


def forbid(cluster: SandboxCluster, principal: str, topic: str) -> None:
    literal, read = ResourcePatternType.LITERAL, AclOperation.READ
    exactly = AclBindingFilter(ResourceType.TOPIC, topic, literal, principal, "*", read, AclPermissionType.ALLOW)
    client = AdminClient(cluster.client_settings())
    assert len(client.delete_acls([exactly])[exactly].result(30)) == 1
    wait_for_acls(client, exactly, 0)


def wait_for_acls(client: AdminClient, wanted: AclBindingFilter, count: int) -> None:
    """The controller answers before the broker's authorizer has the change."""
    until(lambda: len(client.describe_acls(wanted).result(30)) == count, lambda: wanted)


def settle(cluster: SandboxCluster) -> None:
    """Return when the broker's authorizer has every change that the controller has answered: changes reach it in order."""
    topic = f"last-{secrets.token_hex(4)}"
    allow(cluster, "User:nobody", topic, "READ")
    forbid(cluster, "User:nobody", topic)


def line(principal: str, topic: str) -> str:
    return f"{principal} ALLOW READ topic {topic} (literal) from *"


def texts(outcome: SyncOutcome) -> set[str]:
    assert outcome.failed == ()
    return {f"{change.action} {change.what}" for change in outcome.changes}


def kafka_acls(cluster: SandboxCluster) -> set[str]:
    """Every ACL, from Kafka's Java client, in the words of the reports."""
    settle(cluster)
    file = cluster.directory / "tool.properties"
    settings = [line.replace("A.", "", 1) for line in login("A", "ferry")]
    file.write_text("\n".join(settings), encoding="latin-1")
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{tools_jars()}/*", COMMAND, "--list"]
    command += ["--bootstrap-server", cluster.bootstrap, "--command-config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=True)
    found, resource = set(), ""
    for text in done.stdout.splitlines():
        if about := re.search(r"resourceType=(\w+), name=(.*), patternType=(\w+)\)", text):
            resource = f"{about[1].lower().replace('_', '-')} {about[2]} ({about[3].lower()})"
        elif acl := re.search(r"principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", text):
            found.add(f"{acl[1]} {acl[4]} {acl[3]} {resource} from {acl[2]}")
    return found
