"""Keys that Ferry does not know, as people have them in their files: warnings, unless they may be meant to choose what is copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.config import FerryConfig

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]


@pytest.mark.parametrize(
    "key",
    [
        "rest.port",
        "A.rest.host.name",
        "offset.storage.file.filename",
        "rotate.interval.ms",
        "internal.key.converter",
        "value.converter.schemas.enable",
        "A->B.key.converter.schemas.enable",
        "A.auto.create.topics.enable",
        "A->B.heartbeats.enable.now",
        "A->B.errors.deadletterqueue.topic.name",
        "A.consumer.confluent.batch.expiry.ms",
        "A->B.source.consumer.chosen.topics",
        "B.producer.schema.registry.url",
        "C.bootstrap.servers",
        "confluent.topic.bootstrap.servers",
        "log4j.rootLogger",
        "confluent.metrics.reporter.whitelist",
        "x",
    ],
)
def test_a_key_that_chooses_nothing_gives_a_warning(load: Load, key: str) -> None:
    config = load(f"{key} = 1\n")
    (warning,) = config.warnings
    assert f":5: {key}: " in warning
    assert warning.endswith(": it has no effect")
    assert config.flow("A->B") == load().flow("A->B")


def test_a_misspelt_key_without_effect_gives_a_warning_with_the_right_one(load: Load) -> None:
    (warning,) = load("A.consumer.fetch.max.byte = 1\n").warnings
    assert warning.endswith(": is not a known property: it has no effect; did you mean A.consumer.fetch.max.bytes?")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("topcis", "; did you mean topics?"),
        ("A->B.task.max", "; did you mean A->B.tasks.max?"),
        ("A.consumer.auto.offset.rest", "; did you mean A.consumer.auto.offset.reset?"),
        ("A->B.replication.policy.clas", "; did you mean A->B.replication.policy.class?"),
        ("sync.topic.configs.interval.second", "; did you mean sync.topic.configs.interval.seconds?"),
        ("A->B.topics.regex", "is not a known property"),
        ("topic.whitelist", "is not a known property"),
        ("whitelist", "is not a known property"),
        ("A->B.topic.rename.format", "is not a known property"),
        ("A->B.ferry.unheard.of", "is not a known property"),
        ("ferry.unheard.of", "is not a known property"),
        ("A->C.topics", "A->C is neither a cluster of this file (A, B) nor a flow between two of them"),
        ("a.security.protocol", "; did you mean A.security.protocol?"),
        ("A=>B.topics", "5: A: is not a known property: a key ends at its first blank"),
        ("A->B topics", "5: A->B: is not a known property: a key ends at its first blank"),
        ("A-> B.topics", "5: A->: is not a known property: a key ends at its first blank"),
        ("A-B.topics", "A-B is neither a cluster of this file (A, B) nor a flow"),
        ('"A->B.topics"', "quotes are part of a key; write A->B.topics"),
        ("A.alias", "gives the cluster another alias"),
        ("A->B.topicsPattern", "is not a known property"),
        ("include.topics", "include is neither a cluster"),
        ("exclude", "is not a known property"),
        ("topic.list", "is not a known property"),
        ("TOPICS", "; did you mean topics?"),
        ("A->B.REPLICATION.POLICY.CLASS", "; did you mean A->B.replication.policy.class?"),
        ("A->B.policy.class", "is not a known property"),
        ("topics_blacklist", "; did you mean topics.exclude?"),
        ("sync.topic.config", "; did you mean sync.topic.configs.enabled?"),
        ("topics.include", "; did you mean topics?"),
        ("fery.start", "; did you mean ferry.start?"),
        ("Ferry.start", "; did you mean ferry.start?"),
    ],
)
def test_a_key_that_may_choose_records_is_refused(problems: Problems, key: str, told: str) -> None:
    (found,) = problems(f"{key} = 1\n")
    assert found.startswith(f"5: {key}: ") or told.startswith("5: ")
    assert told in found
