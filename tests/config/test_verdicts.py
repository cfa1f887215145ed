"""Verdicts on combinations and on names of other times: what MM2 refuses is refused, and nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.config import FerryConfig

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "emit.offset-syncs.enabled = false\noffset-syncs.topic.location = target",
            ["5: emit.offset-syncs.enabled: is false, but offset-syncs.topic.location is set, which MM2 refuses: remove one"],
        ),
        (
            "A->B.offset-syncs.topic.replication.factor = 1\nA->B.emit.offset-syncs.enabled = false",
            ["6: A->B.emit.offset-syncs.enabled: is false, but A->B.offset-syncs.topic.replication.factor is set, which MM2 refuses"],
        ),
        (
            "A->B.exactly.once.support = required\nA.consumer.isolation.level = read_uncommitted",
            ["5: A->B.exactly.once.support: is required, which MM2 refuses without isolation.level=read_committed of the source's"],
        ),
        ("A->B.exactly.once.support = required", ["5: A->B.exactly.once.support: is required, which MM2 refuses without"]),
        (
            "A->B.exactly.once.support = required\nA->B.consumer.isolation.level = read_committed\ntransaction.producer = false",
            ["7: transaction.producer: is false, but A->B.exactly.once.support is required: change one"],
        ),
        ("A->B.exactly.once.support = always", ["5: A->B.exactly.once.support: must be requested or required, not 'always'"]),
        ("offset-syncs.topic.location = both", ["5: offset-syncs.topic.location: must be source or target, not 'both'"]),
        ("metric.names.formats =", ["5: metric.names.formats: must be a list of legacy and new, not empty, not ''"]),
        ("metric.names.formats = new, old", ["5: metric.names.formats: must be a list of legacy and new, not empty, not 'new, old'"]),
        ("tasks.max = 0", ["5: tasks.max: must be a whole number from 1 to 2147483647, not '0'"]),
        ("checkpoints.topic.replication.factor = 0", ["5: checkpoints.topic.replication.factor: must be a whole number from 1 to 32767"]),
        ("heartbeats.topic.replication.factor = 40000", ["5: heartbeats.topic.replication.factor: must be a whole number from 1 to 32767"]),
        ("replication.factor = -2", ["5: replication.factor: must be a whole number from 1 to 32767, or -1"]),
        ("offset.lag.max = -1", ["5: offset.lag.max: must be a whole number from 0"]),
        ("emit.checkpoints.interval.seconds = 1.5", ["5: emit.checkpoints.interval.seconds: must be a whole number"]),
        ("topics = a,,b", ["5: topics: must be a list separated by commas, without empty elements"]),
        ("topics = a{2,3}", ["5: topics: 'a{2' uses something that is not closed (a comma separates elements, inside {} too)"]),
        (
            "forwarding.admin.class = com.example.Admin",
            ["5: forwarding.admin.class: must be ForwardingAdmin (Ferry runs no other Java classes)"],
        ),
        ("A->B.use.defaults.from = both", ["5: A->B.use.defaults.from: must be target or source"]),
    ],
)
def test_what_is_refused(problems: Problems, text: str, told: list[str]) -> None:
    found = problems(text + "\n")
    assert len(found) == len(told)
    for line, start in zip(found, told, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topics.whitelist = a", "MM2 never read it: write topics"),
        ("groups.whitelist = a", "MM2 never read it: write groups"),
        ("rename.topics = false", "write replication.policy.class=IdentityReplicationPolicy"),
        ("source.bootstrap.servers = a:9092", "write <source>.bootstrap.servers (in a connector"),
        ("target.cluster.bootstrap.servers = a:9092", "is not a known property: write <target>.bootstrap.servers"),
        ("source.consumer.client.id = x", "is not a known property: write <source>.consumer.client.id"),
        ("remote.admin.request.timeout.ms = 1", "is not a known property: write <cluster>.admin.request.timeout.ms"),
        ("A->B.source.cluster.alias = X", "MM2 would write X into the names of topics"),
        ("source.cluster.alias = X", "MM2 would write X into the names of topics"),
        ("A->B.transforms = mask", "single message transforms"),
        ("A->B.predicates = p", "conditions of single message transforms"),
    ],
)
def test_an_old_name_gives_the_new_one(problems: Problems, text: str, told: str) -> None:
    (found,) = problems(text + "\n")
    assert found.startswith(f"5: {text.partition(' = ')[0]}: ")
    assert told in found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("refresh.topics = false", "every run does this"),
        ("source.cluster.alias = ", "says nothing, and clusters says A: Ferry takes A"),
        ("A->B.source.cluster.alias = ", "says nothing, and clusters says A: Ferry takes A"),
        ("target.cluster.alias = ", "says nothing, and clusters says B: Ferry takes B"),
        ("replication.policy.class = IdentityReplicationPolicy\nsource.cluster.alias = ", "says nothing, and clusters says A"),
        ("refresh.groups = false", "every run does this"),
        ("readahead.queue.capacity = 500", "memory"),
        ("heartbeats.topic.retention.ms = 1", "the topic is compacted"),
        ("checkpoints.topic.retention.ms = 1", "the topic is compacted"),
        ("offset.syncs.topic.retention.ms = 1", "the topic is compacted"),
        ("A->B.key.converter.class = X", "as bytes"),
        ("connector.type = sink", "see transaction.producer"),
        ("admin.request.timeout.ms = 1", "MM2 drops it at the top level: write <cluster>.admin.request.timeout.ms"),
        ("consumer.fetch.min.bytes = 1", "MM2 drops it at the top level: write <cluster>.consumer.fetch.min.bytes"),
        ("use.incremental.alter.configs = never", "IncrementalAlterConfigs"),
        ("add.source.alias.to.metrics = true", "Kafka 4.0 removed it"),
        ("emit.offset-syncs.enabled = false", "emit.checkpoints.enabled=false switches them off"),
        (
            "A->B.emit.checkpoints.enabled = false\nA->B.sync.group.offsets.enabled = true",
            "needs no checkpoints",
        ),
    ],
)
def test_accepted_keys_without_effect_give_a_warning(load: Load, text: str, told: str) -> None:
    (warning,) = load(text + "\n").warnings
    assert told in warning


@pytest.mark.parametrize(
    "text",
    [
        "A->B.exactly.once.support = requested",
        # The checkpoint connector alone is refused by MM2, and its dedicated mode runs the others: checkpoints are off.
        "emit.checkpoints.enabled = false",
        "emit.checkpoints.enabled = false\nemit.offset-syncs.enabled = false",
        "sync.topic.configs.interval.seconds = -1",
        "emit.heartbeats.interval.seconds = 0",
        "replication.factor = -1",
    ],
)
def test_what_is_accepted(load: Load, text: str) -> None:
    assert not [warning for warning in load(text + "\n").warnings if "exactly.once.support" not in warning]


def test_required_with_read_committed(load: Load) -> None:
    assert load("A->B.exactly.once.support = required\nA.consumer.isolation.level = read_committed\n").flow("A->B").exactly_once
