"""What brokers' configs say of topics that set nothing themselves."""

from __future__ import annotations

import pytest

from ferry.clusters.admin.broker_defaults import topic_defaults

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("told", "retention"),
    [
        ({}, None),
        ({"log.retention.hours": "168"}, "604800000"),
        ({"log.retention.hours": "168", "log.retention.minutes": "1"}, "60000"),
        ({"log.retention.hours": "168", "log.retention.minutes": "1", "log.retention.ms": "5"}, "5"),
        ({"log.retention.hours": "-1"}, "-1"),
    ],
)
def test_the_smallest_unit_of_retention_counts(told: dict[str, str], retention: str | None) -> None:
    assert topic_defaults(told).get("retention.ms") == retention


def test_names_are_those_of_topic_configs() -> None:
    told = {"log.cleanup.policy": "compact", "log.message.timestamp.type": "LogAppendTime", "message.max.bytes": "9", "log.dirs": "/x"}
    assert topic_defaults(told) == {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "max.message.bytes": "9"}
