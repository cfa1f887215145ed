"""The simulated cluster is held against a real broker: the same script, compared answer by answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
from tests.simulation.asks import Memory
from tests.simulation.asks_of_admins import (
    ApiVersions,
)
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.comparing import differences, simulated_answers
from tests.simulation.races import surprises
from tests.simulation.real_broker import RealBroker
from tests.simulation.releases import Release, request_versions
from tests.simulation.script import SCENES
from tests.simulation.topic_configs import OF_BROKER_FILE
from tools.kafka import SandboxCluster
from tools.kafka.releases import OLDEST, RELEASES

from ferry.config import Flow

# Brokers look for old segments all the time; some releases do so only after their first 30 seconds.
RETENTION = {"log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "50"}
RACES = 3  # of each kind
# Releases, and versions of transactions there; 0: before the feature. A cluster of 4.0 or later that was upgraded has version 1.
TRIED = [("2.8.2", 0), ("3.9.1", 0), ("4.0.0", 1), ("4.0.0", 2), ("4.3.1", 1), ("4.3.1", 2), ("4.4.0", 1), ("4.4.0", 2)]
# What the brokers of tests set.
SANDBOX_DEFAULTS = {
    "file.delete.delay.ms": ("1000", OF_BROKER_FILE),
    "retention.ms": ("-1", OF_BROKER_FILE),
}


def _number(release: str) -> Release:
    major, minor, _ = map(int, release.split("."))
    return major, minor


@pytest.mark.unit
def test_every_release_is_tried() -> None:
    assert list(dict(TRIED)) == list(RELEASES)


@pytest.mark.unit
@pytest.mark.parametrize(("release", "version"), TRIED)
def test_every_question_has_an_answer(release: str, version: int) -> None:
    answers = simulated_answers(SCENES, release=_number(release), transaction_version=version)
    assert {scene: len(found) for scene, found in answers.items()} == {scene: len(asks) for scene, asks in SCENES.items()}
    without = {type(ask).__name__ for scene, asks in SCENES.items() for ask, told in zip(asks, answers[scene], strict=True) if told is None}
    assert without == ({"DescribeTransactions", "ListTransactions"} if release == OLDEST else set())
    assert answers == simulated_answers(SCENES, release=_number(release), transaction_version=version)


@contextmanager
def _broker(
    cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow], release: str, version: int
) -> Iterator[RealBroker]:
    cluster = cluster_factory(RETENTION, version=release, features=(f"transaction.version={version}",) if version else ())
    real = RealBroker(flow_factory("A->B.topics = x", source=SimpleNamespace(bootstrap="127.0.0.1:1"), target=cluster))
    try:
        yield real
    finally:
        real.close()


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize(("release", "version"), TRIED)
def test_a_real_broker_answers_the_same(
    release: str, version: int, cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    expected = simulated_answers(SCENES, release=_number(release), transaction_version=version, topic_defaults=SANDBOX_DEFAULTS)
    memory, keys = Memory(int(time.time() * 1_000)), SimulatedCluster().answered
    with _broker(cluster_factory, flow_factory, release, version) as real:
        offered = {one.api_key: (one.min_version, one.max_version) for one in real.asked(ApiVersions(), memory).api_keys}
        found = differences(SCENES, expected, memory, real.ask, real.wait)
    assert not found, "\n".join(map(str, found))
    simulated = request_versions(_number(release))
    assert {key: offered.get(key) for key in keys} == {key: simulated.get(key) for key in keys}


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize(("release", "version"), TRIED)
def test_a_real_broker_answers_the_same_while_it_writes_markers(
    release: str, version: int, cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    memory = Memory(int(time.time() * 1_000))
    with _broker(cluster_factory, flow_factory, release, version) as real:
        asked = partial(real.asked, memory=memory)
        found = surprises(RACES, asked, real.both, memory, release=_number(release), transaction_version=version)
    assert found == {}
