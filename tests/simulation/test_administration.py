"""Topics and configs of a simulated cluster."""

from __future__ import annotations

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks_of_admins import AlterConfigs, CreatePartitions, CreateTopics, DeleteTopics, DescribeConfigs, Metadata
from tests.simulation.codes import Code

pytestmark = pytest.mark.unit


@pytest.fixture
def ask() -> Asker:
    return Asker()


def _config(ask: Asker, key: str) -> tuple[str, int]:
    [entry] = ask(DescribeConfigs("t", (key,))).results[0].configs
    return entry.value, entry.config_source


def test_topics(ask: Asker) -> None:
    [made] = ask(CreateTopics("t", 2, config=(("cleanup.policy", "compact"),))).topics
    assert (made.error_code, made.num_partitions) == (0, 2)
    [told] = ask(Metadata(("t",), operations=True)).topics
    assert (told.topic_id, len(told.partitions), told.authorized_operations) == (made.topic_id, 2, {3, 4, 5, 6, 7, 8, 10, 11})
    assert ask(CreatePartitions("t", 3)).results[0].error_code == 0
    assert len(ask.cluster.topic("t").partitions) == 3
    assert ask(CreatePartitions("t", 3)).results[0].error_code == Code.INVALID_PARTITIONS
    assert ask(DeleteTopics("t")).responses[0].error_code == 0
    assert ask(DeleteTopics("t")).responses[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(Metadata(("t",))).topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    [again] = ask(CreateTopics("t")).topics
    assert again.topic_id != made.topic_id


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (CreateTopics("t.1"), Code.TOPIC_ALREADY_EXISTS),
        (CreateTopics("t_1"), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopics("t/1"), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopics("u", replicas=2), Code.INVALID_REPLICATION_FACTOR),
        (CreateTopics("u", partitions=0), Code.INVALID_PARTITIONS),
        (CreateTopics("u", config=(("no.such.config", "1"),)), Code.INVALID_CONFIG),
        (CreateTopics("u", config=(("retention.ms", "long"),)), Code.INVALID_CONFIG),
        (CreateTopics("u", only_checked=True), Code.NONE),
    ],
)
def test_topics_that_are_not_made(ask: Asker, asked: CreateTopics, code: Code) -> None:
    ask(CreateTopics("t.1"))
    assert ask(asked).topics[0].error_code == code
    assert set(ask.cluster.state.topics) == {"t.1"}


def test_configs(ask: Asker) -> None:
    ask(CreateTopics("t", config=(("retention.ms", "1000"),)))
    assert _config(ask, "retention.ms") == ("1000", 1)
    assert _config(ask, "cleanup.policy") == ("delete", 5)
    assert ask(AlterConfigs("t", "cleanup.policy", "compact", 2)).responses[0].error_code == 0
    assert _config(ask, "cleanup.policy") == ("delete,compact", 1)
    assert ask(AlterConfigs("t", "cleanup.policy", "delete", 3)).responses[0].error_code == 0
    assert ask.cluster.topic("t").is_compacted
    ask(AlterConfigs("t", "retention.ms", None, 1))
    assert _config(ask, "retention.ms") == ("604800000", 5)
    assert ask(AlterConfigs("t", "retention.ms", "1", 2)).responses[0].error_code == Code.INVALID_CONFIG
    assert ask(AlterConfigs("t", "retention.ms", "x")).responses[0].error_code == Code.INVALID_CONFIG
    assert ask(AlterConfigs("u", "retention.ms", "1")).responses[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(DescribeConfigs("u")).results[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
    broker = ask(DescribeConfigs("1", None, 4)).results[0]
    assert {entry.name: entry.value for entry in broker.configs}["message.max.bytes"] == "1048588"
