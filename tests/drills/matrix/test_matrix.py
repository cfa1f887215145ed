"""Every release as source and as target: what a flow does in its life, by the real command, judged by librdkafka."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.drills.matrix import source_data
from tests.drills.matrix.pair import Pair
from tests.drills.matrix.source_data import CODECS, COMPACTED, CONFIGS
from tests.drills.matrix.stage import BEHIND, OLD_PROTOCOL, Stage
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.groups import next_records
from tools.kafka.releases import NEWEST, RELEASES

from ferry.sandbox.sample_data import read_in_part

pytestmark = [pytest.mark.matrix, pytest.mark.brokers]

FAILED = 5
PAIRS = (*product(RELEASES, RELEASES), *product(BEHIND, [NEWEST]), *product([NEWEST], BEHIND))


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_flow_from_one_release_to_another(stage: Stage, old: str, new: str, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, old, new, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name, large=True)
    plan = pair.ferry("plan")
    assert plan["failed"] == [], plan
    assert pair.run_and_kill() > 0
    report = pair.ferry("run", "--master", pair.master)
    assert (report["failed"], report["losses"]) == ([], [])
    equal(pair)
    source_data.fill(pair.source, pair.name)
    groups = followed(pair)
    pair.ferry("run", "--master", pair.master)
    equal(pair)
    moved(pair, groups)
    assert configs_of(pair.target, pair.topics()[f"{pair.name}.{CODECS[0]}"]) >= CONFIGS.items()
    assert configs_of(pair.target, pair.topics()[f"{pair.name}.{COMPACTED}"]) >= {"cleanup.policy": "compact"}.items()
    assert readers_of(pair.target, pair.topics()[f"{pair.name}.{CODECS[0]}"]) == {"User:reader"}
    proof = pair.ferry("verify")
    assert (proof["equal"], proof["not_covered"]) == (True, []), proof
    backfilled(pair)
    if old != OLD_PROTOCOL:  # there Ferry cannot see it, and says so
        recreated(pair)


def equal(pair: Pair) -> None:
    found = compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics())
    assert found.equal, found.differences[:3]
    assert found.records > 0


def followed(pair: Pair) -> list[str]:
    """Groups that have read a part; one a topic."""
    groups = []
    for topic in pair.topics():
        groups.append(f"{topic}-readers")
        assert read_in_part(pair.source.bootstrap, groups[-1], topic)
    return groups


def moved(pair: Pair, groups: list[str]) -> None:
    """The groups go on at the same record, and the translation says so beforehand."""
    told = pair.ferry("translate")
    entries = {(entry["group"], entry["topic"], entry["partition"]): entry for entry in told["positions"]}
    for group, (topic, remote) in zip(groups, pair.topics().items(), strict=True):
        here, there = (next_records(cluster.bootstrap, group, name) for cluster, name in ((pair.source, topic), (pair.target, remote)))
        assert here == there != {}
        assert all(entries[group, topic, partition]["exact"] for partition in here), entries


def configs_of(cluster: SandboxCluster, topic: str) -> Any:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient(cluster.client_settings())
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in found.items()}.items()


def readers_of(cluster: SandboxCluster, topic: str) -> set[str]:
    anything, allow = AclOperation.ANY, AclPermissionType.ALLOW
    wanted = AclBindingFilter(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None, anything, allow)
    admin = AdminClient(cluster.client_settings())
    return {found.principal for found in admin.describe_acls(wanted).result(30)}


def backfilled(pair: Pair) -> None:
    """A flow that began at the end has its history copied later, once."""
    ((topic, remote),) = pair.history().items()
    source_data.fill_alone(pair.source, topic, 300)
    pair.ferry("run", "--master", "inline", late=True)
    assert read_all(pair.target.bootstrap, remote) == [[]]
    interval = ("--from", "2020-01-01", "--until", "2021-01-01", "--master", "inline")
    assert pair.ferry("backfill", *interval, late=True)["totals"]["records"] == 300
    assert pair.ferry("backfill", *interval, late=True)["totals"]["records"] == 0
    found = compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.history())
    assert found.equal, found.differences[:3]


def recreated(pair: Pair) -> None:
    """A topic that was deleted and created again stops, by name, and the others go on."""
    topic, remote = pair.again()
    source_data.fill_alone(pair.source, topic, 50)
    pair.ferry("run", "--master", "inline")
    source_data.recreate(pair.source, topic)
    source_data.fill_alone(pair.source, topic, 80)
    source_data.fill(pair.source, pair.name)
    report = pair.ferry("run", "--master", "inline", code=FAILED)
    assert {(entry["topic"], entry["error"].split(":")[0]) for entry in report["failed"]} == {(topic, "SourceRecreated")}
    assert len(read_all(pair.target.bootstrap, remote)[0]) == 50
    equal(pair)
