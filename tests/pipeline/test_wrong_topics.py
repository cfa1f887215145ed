"""Internal topics that somebody has created in another way, or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue, TopicDescription
from ferry.config import Flow, load_config
from ferry.ledger.topics import own_topics
from ferry.pipeline.wrong_topics import names_on, wrong_topics

pytestmark = pytest.mark.unit

LEDGER, STATE, RUNS = (f"mm2-ferry-{name}.A.internal" for name in ("ledger", "state", "runs"))


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    path = tmp_path / "mm2.properties"
    lines = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b1:9092, b2:9092", "A->B.enabled = true"]
    path.write_text("\n".join([*lines, "A->B.topics = t", "A->B.offset-syncs.topic.location = source"]) + "\n")
    return load_config(path).flows[0]


def described(policies: dict[str, str], **partitions: int) -> tuple[dict[str, TopicDescription], dict[str, dict[str, ConfigValue]]]:
    """Topics with these policies; and one partition each, but for those named by what follows the last prefix."""
    topics = {name: TopicDescription("id", partitions.get(name.split(".")[0].rpartition("-")[2], 1)) for name in policies}
    return topics, {name: {"cleanup.policy": ConfigValue(policy, ConfigOrigin.TOPIC)} for name, policy in policies.items()}


def test_topics_as_ferry_creates_them(flow: Flow) -> None:
    policies = {name: own.policy for name, own in own_topics(flow).items()} | {"A.checkpoints.internal": "compact", "heartbeats": "delete"}
    assert names_on(flow, flow.target) == set(policies)
    assert wrong_topics(flow, flow.target, *described(policies, ledger=9)) == ()


def test_what_is_wrong_and_the_command_that_mends_it(flow: Flow) -> None:
    policies = {LEDGER: "delete", STATE: "compact,delete", RUNS: "compact", "A.checkpoints.internal": "delete"}
    found = {wrong.problem.split()[1]: wrong for wrong in wrong_topics(flow, flow.target, *described(policies))}
    assert {name: wrong.stops for name, wrong in found.items()} == {
        LEDGER: True,
        STATE: True,
        RUNS: False,
        "A.checkpoints.internal": False,
    }
    command = "kafka-configs.sh --bootstrap-server b1:9092,b2:9092 --alter --entity-type topics"
    assert found[LEDGER].fix == f"{command} --entity-name {LEDGER} --add-config cleanup.policy=compact"
    assert found[RUNS].fix.endswith("cleanup.policy=delete")
    assert "has cleanup.policy=compact,delete: records that explain the copy expire" in str(found[STATE])


def test_a_topic_of_which_only_one_partition_is_used(flow: Flow) -> None:
    (wrong,) = wrong_topics(flow, flow.target, *described({STATE: "compact"}, state=3))
    assert (wrong.problem, wrong.stops) == (f"topic {STATE} has 3 partitions, and only the first is used", False)


def test_topics_whose_configs_are_hidden_are_not_judged(flow: Flow) -> None:
    topics, _ = described({LEDGER: "delete"})
    assert wrong_topics(flow, flow.target, topics, {}) == ()


def test_offset_syncs_on_the_source(flow: Flow) -> None:
    (name,) = names_on(flow, flow.source)
    (wrong,) = wrong_topics(flow, flow.source, *described({name: "delete"}))
    assert name == "mm2-offset-syncs.B.internal"
    assert "--bootstrap-server a:9092" in wrong.fix
