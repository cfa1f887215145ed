"""Two clusters of a test file's own, and what every test of verify does with them: make topics, fill them, copy, prove.

They are not those of the session: flows whose names stay as they are read whatever other flows left on a cluster.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.both_clusters import both_clusters
from tests.opened import verify
from tools.kafka import SandboxCluster

from ferry.config import Flow, load_config
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport
from ferry.verify.range_runner import CompareRanges, verify_inline
from ferry.verify.request import VerifyRequest
from ferry.verify.verify_report import VerifyReport

# Value, key, headers, timestamp in ms (0: now).
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """A source and a target, started at the same time."""
    directory = tmp_path_factory.mktemp("proving")
    with both_clusters(directory) as pair:
        yield pair


@pytest.fixture(scope="module")
def source_cluster(clusters: tuple[SandboxCluster, SandboxCluster]) -> SandboxCluster:
    """The cluster that is copied from."""
    return clusters[0]


@pytest.fixture(scope="module")
def target_cluster(clusters: tuple[SandboxCluster, SandboxCluster]) -> SandboxCluster:
    """The cluster that is copied to."""
    return clusters[1]


@dataclass
class Pair:
    """Both clusters, with flows between them that copy and do nothing else. `topic` makes one on the source, if no cluster is given."""

    source: SandboxCluster
    target: SandboxCluster
    config: Callable[..., Path]
    _topics: Callable[..., str]
    _run: Callable[..., RunReport]

    def topic(self, cluster: SandboxCluster | None = None, **options: object) -> str:
        return self._topics(cluster or self.source, **options)

    def flow(self, topics: str, *lines: str) -> Flow:
        return self.flows(f"A->B.topics = {topics}", *lines)[0]

    def flows(self, *lines: str) -> tuple[Flow, ...]:
        return load_config(self.config(*lines)).flows

    def run(self, flow: Flow, expected: ExitCode | None = ExitCode.DONE, **interval: datetime) -> RunReport:
        """One whole run, whose outcome is as `expected` (None: whatever it is)."""
        report = self._run(flow, **interval)
        assert expected in {None, report.exit_code}, (report.exit_code, report.failed, report.skipped, report.superseded)
        return report

    def prove(self, flow: Flow, run_id: str | None = None, compare: CompareRanges = verify_inline, **options: object) -> VerifyReport:
        request = VerifyRequest(flow.name, run_id or secrets.token_hex(4), **options)  # type: ignore[arg-type]
        return verify(flow, request, compare, lambda _: None)

    def remote(self, flow: Flow, topic: str) -> str:
        return f"{flow.source.alias}.{topic}"


@pytest.fixture
def pair(
    clusters: tuple[SandboxCluster, SandboxCluster],
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    run_flow: Callable[..., RunReport],
    copy_only: tuple[str, ...],
) -> Pair:
    """The file's clusters; names and aliases are of the test's own."""
    return Pair(*clusters, lambda *lines: config_file(*lines, *copy_only), topic_factory, run_flow)


def write(cluster: SandboxCluster, topic: str, rows: Sequence[Row], partitions: Sequence[int] = (0,), **settings: object) -> None:
    """The rows in each partition, in full batches however slow this process is: only the flush sends one that is not."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 60_000, "enable.idempotence": True, **settings})
    for partition in partitions:
        for value, key, headers, timestamp in rows:
            producer.produce(topic, value, key, partition, headers=headers, timestamp=timestamp)
    assert producer.flush(60) == 0


def numbers(count: int, first: int = 0) -> list[Row]:
    """Rows whose values are numbers."""
    return [(f"{number}".encode(), None, [], 0) for number in range(first, first + count)]
