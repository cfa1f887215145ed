"""Active/active: names that stay as they are in both directions, and names that tell the source; nothing goes round."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.config import Flow, load_config
from ferry.copying import lane, upkeep
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.model import CopyJob, LaneResult, LaneTask
from ferry.copying.upkeep import keep_ledger_tidy
from ferry.errors import ExitCode
from ferry.reporting.run_report import RunReport
from ferry.reporting.status import flow_status
from ferry.sandbox import SandboxCluster, read_all

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
IDENTITY = "replication.policy.class = IdentityReplicationPolicy"
BOTH = ("B->A.enabled = true", IDENTITY, "ferry.lanes = 2", "ferry.transaction.seconds = 1", "A->B.ferry.on.unexplained = local")
PARTITIONS = 2


class KilledError(BaseException):
    """The worker is gone: nothing is tidied up."""


@dataclass
class KilledRunner(InlineLaneRunner):
    """Lanes whose worker dies at the end of a transaction that was not committed yet."""

    patch: pytest.MonkeyPatch
    after: int
    struck: list[str] = field(default_factory=list)

    def run(self, job: CopyJob, tasks: Sequence[LaneTask]) -> Iterator[LaneResult]:
        commit = lane.Lane._append_internal

        async def killed(self_: lane.Lane, *arguments: object) -> None:
            await commit(self_, *arguments)  # type: ignore[arg-type]
            self.after -= 1
            if self.after < 0:
                self.struck.append(job.flow.name)
                raise KilledError

        with self.patch.context() as patch:
            patch.setattr(lane.Lane, "_append_internal", killed)
            yield from super().run(job, tasks)


@dataclass
class Side:
    """One cluster with a topic that is written to by its own producers and by the flow from the other side."""

    name: str
    cluster: SandboxCluster
    topic: str
    produced: int = 0
    # By partition: what stood at each offset, also what retention has deleted since.
    seen: list[dict[int, bytes]] = field(default_factory=lambda: [{} for _ in range(PARTITIONS)])

    def write(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 2, "batch.num.messages": 7})
        for number in range(self.produced, self.produced + count):
            producer.produce(self.topic, value=f"{self.name}{number}".encode(), partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(30) == 0
        self.produced += count

    def look(self) -> None:
        for number, records in enumerate(read_all(self.cluster.bootstrap, self.topic)):
            self.seen[number].update({record.offset: record.value or b"" for record in records})

    def delete_below(self, offsets: Mapping[int, int]) -> None:
        self.look()
        client = AdminClient(self.cluster.client_settings())
        for future in client.delete_records([TopicPartition(self.topic, number, end) for number, end in offsets.items()]).values():
            future.result(30)

    def of(self, origin: Side) -> list[list[bytes]]:
        """What there is of an origin's records, by partition, in order."""
        return [[value for _, value in sorted(records.items()) if value.startswith(origin.name.encode())] for records in self.seen]


def expected(origin: Side) -> list[list[bytes]]:
    return [[f"{origin.name}{number}".encode() for number in range(first, origin.produced, PARTITIONS)] for first in range(PARTITIONS)]


def assert_once(*sides: Side) -> None:
    for side in sides:
        side.look()
        for origin in sides:
            assert side.of(origin) == expected(origin), f"records of {origin.name} on {side.name}"


@dataclass
class Pair:
    """Both directions of one topic."""

    there: Flow
    back: Flow
    a: Side
    b: Side


@pytest.fixture
def pair(
    config_file: Callable[..., Path],
    topic_factory: Callable[..., str],
    source_cluster: SandboxCluster,
    target_cluster: SandboxCluster,
) -> Pair:
    """Both sides have records of their own before any flow runs."""
    topic = topic_factory(source_cluster, partitions=PARTITIONS)
    topic_factory(target_cluster, partitions=PARTITIONS, name=topic)
    there, back = load_config(config_file(*BOTH, f"topics = {topic}")).flows
    sides = Side("a", source_cluster, topic), Side("b", target_cluster, topic)
    for side in sides:
        side.write(40)
    return Pair(there, back, *sides)


def positions(flow: Flow) -> dict[int, int]:
    return {entry.partition: entry.position for entry in flow_status(flow).partitions}


def test_ten_rounds_with_kills_upkeep_and_retention(pair: Pair, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record exactly once on each side, in its origin's order, and nothing ever goes round."""
    monkeypatch.setattr(upkeep, "YOUNG_MILLISECONDS", -60_000)
    chance = random.Random(7)
    struck: list[str] = []
    merged = 0
    report = run_flow(pair.back)
    assert {failure.error for failure in report.failed} == {"PositionDisagrees"}, "nobody has said that what is on A was produced there"
    assert "ferry.on.unexplained=local" in report.failed[0].problem
    assert run_flow(pair.there).exit_code is ExitCode.DONE  # its settings say so; from now on that is settled for both directions
    for number in range(10):
        pair.a.write(chance.randrange(1, 60))
        pair.b.write(chance.randrange(1, 60))
        for flow in chance.sample([pair.there, pair.back], 2):
            if number % 3 == 1:
                runner = KilledRunner(monkeypatch, chance.randrange(3))
                with contextlib.suppress(KilledError):
                    run_flow(flow, runner=runner)
                struck += runner.struck
            else:
                assert run_flow(flow).exit_code is ExitCode.DONE
        if number % 4 == 2:
            for flow in (pair.there, pair.back):
                merged += len(keep_ledger_tidy(flow).merged)
        if number % 4 == 3:
            pair.a.delete_below(positions(pair.there))
            pair.b.delete_below(positions(pair.back))
    assert len(set(struck)) == 2
    assert merged
    left_out = 0
    for flow in (pair.there, pair.back, pair.there, pair.back):
        report = run_flow(flow)
        assert (report.exit_code, report.losses) == (ExitCode.DONE, ())
        left_out += report.from_target
    assert left_out
    assert_once(pair.a, pair.b)
    assert [run_flow(flow).records for flow in (pair.there, pair.back)] == [0, 0]
