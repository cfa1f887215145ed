"""The sample group stands in the middle of its topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.kafka import SandboxCluster
from tools.kafka.groups import next_records

from ferry.sandbox.sample_group import read_in_part

pytestmark = pytest.mark.brokers


def test_the_next_records_are_those_behind_the_middle(
    source_cluster: SandboxCluster, topic_factory: Callable[..., str], produce: Callable[..., None]
) -> None:
    topic = topic_factory(source_cluster, partitions=2)
    produce(source_cluster, topic, [(number % 2, b"k%d" % number, b"v%d" % number) for number in range(20)])
    assert read_in_part(source_cluster.bootstrap, f"group-{topic}", topic) == 2
    assert next_records(source_cluster.bootstrap, f"group-{topic}", topic) == {0: (b"k10", b"v10"), 1: (b"k11", b"v11")}
