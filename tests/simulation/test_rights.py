"""Answers to a user who lacks a right: what a simulated cluster says, and a real broker too."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.simulation.asker import Asker
from tests.simulation.asks import Ask, Fetch, Memory, Produce
from tests.simulation.asks_of_admins import Metadata
from tests.simulation.codes import Code, codes_of
from tests.simulation.comparing import Names, paths, plain
from tests.simulation.denials import BEFORE, DENIALS, Denial
from tests.simulation.real_broker import RealBroker
from tests.simulation.releases import Release
from tests.simulation.rights import THE_CLUSTER, Kind, Operation
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.access import LOGIN_MODULE

from ferry.config import Flow

USERS = {"admin": "a-secret", "user": "u-secret"}
# Releases, and versions of transactions there.
TRIED = [("2.8.2", (2, 8), 0), ("3.9.1", (3, 9), 0), ("4.3.1", (4, 3), 2), ("4.4.0", (4, 4), 2)]
Answers = list[tuple[Denial, Ask, Any]]


def _simulated(release: Release, version: int) -> Answers:
    asker = Asker(release=release, transaction_version=version)
    names, found = Names(asker.memory), Answers()
    for ask in BEFORE:
        for _ in range(2 if type(ask).__name__ == "FindCoordinators" else 1):
            asker(ask)
    for denial, asks in DENIALS.items():
        asker.cluster.state.rights.deny(*denial)
        for ask in asks:
            if release != (2, 8) or type(ask).__name__ not in {"DescribeTransactions", "ListTransactions"}:
                found.append((denial, ask, plain(asker(ask), names)))
        asker.cluster.state.rights.allow(*denial)
    return found


@pytest.mark.unit
@pytest.mark.parametrize(("release", "version"), [(release, version) for _, release, version in TRIED])
def test_every_denial_is_seen(release: Release, version: int) -> None:
    codes = {29, 30, 53}
    told: dict[Denial, set[int]] = {}
    for denial, _, answer in _simulated(release, version):
        told.setdefault(denial, set()).update(codes_of(answer))
    assert [denial for denial, seen in told.items() if not seen & codes] == []


@pytest.mark.unit
def test_a_right_can_be_taken_and_given_back() -> None:
    ask = Asker()
    ask.memory.topic_ids["t"] = ask.cluster.create_topic("t").topic_id
    ask.cluster.state.rights.deny(Operation.WRITE, Kind.TOPIC, "t")
    assert codes_of(ask(Produce("t"))) == {Code.TOPIC_AUTHORIZATION_FAILED}
    assert codes_of(ask(Fetch("t"))) == {Code.NONE}
    assert Operation.WRITE not in ask(Metadata(("t",), operations=True)).topics[0].authorized_operations
    ask.cluster.state.rights.allow(Operation.WRITE, Kind.TOPIC, "t")
    assert codes_of(ask(Produce("t"))) == {Code.NONE}


class Acls:
    """The user may do everything, but for what is denied."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self._admin = AdminClient(cluster.client_settings())
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        own = [_binding(kind, "*", AclOperation.ALL, AclPermissionType.ALLOW) for kind in kinds]
        # Not ClusterAction and Delete: they stand for Describe and Delete of each topic, also where these are denied.
        of_cluster = (AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.IDEMPOTENT_WRITE)
        own += [_binding(ResourceType.BROKER, THE_CLUSTER, operation, AclPermissionType.ALLOW) for operation in of_cluster]
        self._add(own)

    def _add(self, bindings: list[AclBinding]) -> None:
        for future in self._admin.create_acls(bindings).values():
            future.result(30)
        for binding in bindings:
            until(lambda binding=binding: bool(self._admin.describe_acls(_filter(binding)).result(30)))

    def deny(self, denial: Denial) -> AclBinding:
        operation, kind, name = denial
        binding = _binding(ResourceType[kind.name], name, AclOperation[operation.name], AclPermissionType.DENY)
        self._add([binding])
        return binding

    def allow(self, binding: AclBinding) -> None:
        which = _filter(binding)
        self._admin.delete_acls([which])[which].result(30)
        until(lambda: not self._admin.describe_acls(which).result(30))


def _binding(kind: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:user", "*", operation, permission)


def _filter(one: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation, one.permission_type)


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize(("name", "release", "version"), TRIED)
def test_a_real_broker_answers_the_same(
    name: str, release: Release, version: int, cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    cluster = cluster_factory({"file.delete.delay.ms": "1000"}, version=name, users=USERS, authorizer=True)
    login = f'B.sasl.jaas.config = {LOGIN_MODULE} required username="user" password="{USERS["user"]}";'
    lines = ("A->B.topics = x", "B.security.protocol = SASL_PLAINTEXT", "B.sasl.mechanism = PLAIN", login)
    acls = Acls(cluster)
    real = RealBroker(flow_factory(*lines, source=SimpleNamespace(bootstrap="127.0.0.1:1"), target=cluster))
    memory, differ, expected = Memory(int(time.time() * 1_000)), [], iter(_simulated(release, version))
    names = Names(memory)
    for ask in BEFORE:
        real.asked(ask, memory)
    for denial in DENIALS:
        binding = acls.deny(denial)
        for ask in DENIALS[denial]:
            answer = real.ask(ask, ask.request(memory), lambda _: True)
            if answer is not None:
                ask.learn(memory, answer)
                _, asked, wanted = next(expected)
                assert asked == ask
                differ += [f"{denial} {ask}: {path}" for path in paths(wanted, plain(answer, names))]
        acls.allow(binding)
    real.close()
    assert not differ, "\n".join(differ)
