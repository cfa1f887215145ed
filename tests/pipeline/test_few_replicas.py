"""Topics with fewer replicas than the config wants, from descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.clusters.admin.describe import Brokers, TopicDescription
from ferry.config import Flow, load_config
from ferry.config.settings import OWN_TOPICS, REMOTE_TOPICS, WantedReplicas
from ferry.pipeline.few_replicas import PARTITIONS_A_COMMAND, FewReplicas, few_replicas, reassignment, wanted_on_target
from ferry.policy.naming import ledger_topic

pytestmark = pytest.mark.unit

THREE = Brokers(frozenset({1}), frozenset({1, 2, 3}))


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nreplication.factor = 3\n")
    return load_config(path).flows[0]


def test_which_property_decides_about_the_replicas_of_which_topic(flow: Flow) -> None:
    wanted = wanted_on_target(flow, ["A.orders"])
    assert wanted["A.orders"] == WantedReplicas(REMOTE_TOPICS, 3, given=True)
    assert wanted[ledger_topic("A")] == WantedReplicas(OWN_TOPICS, 3, given=False)
    assert {"heartbeats", "A.checkpoints.internal", "mm2-offset-syncs.A.internal"} <= wanted.keys()


def test_a_topic_is_named_by_the_partition_that_has_the_fewest(flow: Flow) -> None:
    wanted = wanted_on_target(flow, ["A.orders", "A.good", "A.missing"])
    topics = {
        "A.orders": TopicDescription(None, 2, ((1, 2, 3), (1,))),
        "A.good": TopicDescription(None, 1, ((3, 2, 1),)),
        ledger_topic("A"): TopicDescription(None, 1, ((1,),)),
    }
    found = few_replicas(wanted, topics, THREE, 1)
    assert [(few.topic, few.key, few.has, few.wanted) for few in found] == [
        (ledger_topic("A"), OWN_TOPICS, 1, 3),
        ("A.orders", REMOTE_TOPICS, 1, 3),
    ]
    alone = few_replicas(wanted, topics, Brokers(frozenset({1}), frozenset({1})), 1)
    assert [few.topic for few in alone] == ["A.orders"], "a default gives way to a cluster of one broker"


def test_the_command_keeps_existing_replicas_and_names_how_many_partitions_it_leaves() -> None:
    held = tuple((number % 3 + 1,) for number in range(PARTITIONS_A_COMMAND + 3))
    command = reassignment("b1:9092, b2:9092", [FewReplicas("A.o'rders", "k", 1, 2, held)], {1, 2, 3})
    assert command.count('"partition":') == PARTITIONS_A_COMMAND
    assert '"partition":0,"replicas":[1,2]}' in command
    assert (
        "--bootstrap-server b1:9092,b2:9092 --reassignment-json-file replicas.json --execute (and again for 3 more partitions)" in command
    )
