"""The config of a new remote topic."""

from __future__ import annotations

import pytest

from ferry.clusters.describe import ConfigValue
from ferry.mirroring.topics import creation_config

pytestmark = pytest.mark.unit

EXCLUDE = ("min.insync.replicas", "message.timestamp.type", "unclean.*")


def test_own_entries_are_copied_and_excluded_ones_are_not() -> None:
    source = {
        "retention.ms": ConfigValue("1000", dynamic=True),
        "segment.bytes": ConfigValue("5000000", dynamic=False),
        "min.insync.replicas": ConfigValue("2", dynamic=True),
        "unclean.leader.election.enable": ConfigValue("true", dynamic=True),
        "some.secret": ConfigValue("x", dynamic=True, sensitive=True),
    }
    assert creation_config(source, EXCLUDE, "target") == {"retention.ms": "1000"}


def test_defaults_come_along_when_asked_for() -> None:
    source = {"segment.bytes": ConfigValue("5000000", dynamic=False)}
    assert creation_config(source, EXCLUDE, "source") == {"segment.bytes": "5000000"}


@pytest.mark.parametrize("exclude", [EXCLUDE, ()])
def test_nothing_that_would_alter_batches_is_copied(exclude: tuple[str, ...]) -> None:
    source = {"message.timestamp.type": ConfigValue("LogAppendTime", dynamic=True), "compression.type": ConfigValue("gzip", dynamic=True)}
    assert creation_config(source, exclude, "source") == {}


def test_batches_as_large_as_at_the_source_are_let_in() -> None:
    source = {"max.message.bytes": ConfigValue("5000000", dynamic=False)}
    assert creation_config(source, EXCLUDE, "target") == {"max.message.bytes": "5000000"}
    assert creation_config({"max.message.bytes": ConfigValue("1000", dynamic=False)}, EXCLUDE, "target") == {}
