"""Backfills beside scheduled runs, and what the ledger of an older topic does not cover."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conftest import Lab
from tests.opened import read_receipts, run_lanes, seed
from tools.kafka import SandboxCluster, read_all
from tools.kafka.topics import delete_topics

from ferry.config import Flow
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import More
from ferry.copying.request import RunRequest
from ferry.errors import Superseded
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport
from ferry.migration.positions import read_seed_file

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=2)


@pytest.fixture
def fill(source_cluster: SandboxCluster, topic: str) -> Callable[..., None]:
    def produce(day: int, count: int = 100, mark: str = "") -> None:
        producer = Producer({"bootstrap.servers": source_cluster.bootstrap, "linger.ms": 5})
        start = int((BEGIN + day * DAY).timestamp() * 1000)
        for number in range(count):
            producer.produce(topic, value=f"{mark}{day}-{number}".encode(), partition=number % 2, timestamp=start + number)
        assert producer.flush(60) == 0

    return produce


@pytest.fixture
def copied(flow: Flow, topic: str, target_cluster: SandboxCluster) -> Callable[[], list[str]]:
    def values() -> list[str]:
        partitions = read_all(target_cluster.bootstrap, f"{flow.source.alias}.{topic}")
        return [(record.value or b"").decode() for partition in partitions for record in partition]

    return values


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}", "A->B.ferry.start = latest")


class FirstThen:
    """A runner that lets something happen before its lanes run."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def run(self, _: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], __: More = list) -> Generator[LaneResult]:
        self._act()
        return run_lanes(job, tasks)


def day(number: int) -> dict[str, datetime]:
    return {"since": BEGIN + number * DAY, "until": BEGIN + (number + 1) * DAY}


def test_a_scheduled_run_takes_over_and_the_backfill_copies_the_rest_later(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, copied: Callable[[], list[str]]
) -> None:
    fill(0)
    fill(1)
    run_flow(flow)
    fill(2)
    with pytest.raises(Superseded):
        run_flow(flow, **day(0), runner=FirstThen(lambda: run_flow(flow)))
    assert sorted(copied()) == sorted(f"2-{number}" for number in range(100))
    assert run_flow(flow, **day(0)).records == 100
    assert run_flow(flow, **day(0)).records == 0
    assert run_flow(flow).records == 0
    assert sorted(copied()) == sorted(f"{day}-{number}" for day in (0, 2) for number in range(100))


def test_a_backfill_takes_over_and_the_scheduled_run_copies_the_rest_later(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, copied: Callable[[], list[str]]
) -> None:
    fill(0)
    run_flow(flow)
    fill(2)
    with pytest.raises(Superseded):
        run_flow(flow, runner=FirstThen(lambda: run_flow(flow, **day(0))))
    assert run_flow(flow).records == 100
    assert sorted(copied()) == sorted(f"{day}-{number}" for day in (0, 2) for number in range(100))


@pytest.mark.long
def test_adjacent_and_overlapping_intervals_copy_every_record_once(
    flow: Flow, fill: Callable[..., None], run_flow: RunFlow, copied: Callable[[], list[str]]
) -> None:
    for number in range(4):
        fill(number)
    run_flow(flow)
    counts = [
        run_flow(flow, since=BEGIN + first * DAY, until=BEGIN + last * DAY).records for first, last in ((1, 2), (0, 3), (2, 4), (0, 4))
    ]
    assert counts == [100, 200, 100, 0]
    assert sorted(copied()) == sorted(f"{day}-{number}" for day in range(4) for number in range(100))


def test_receipts_of_an_older_source_topic_cover_nothing(
    flow: Flow, topic: str, fill: Callable[..., None], lab: Lab, copied: Callable[[], list[str]], tmp_path: Path
) -> None:
    fill(0)
    lab.run(flow)
    lab.run(flow, **day(0))
    delete_topics(lab.source.client_settings(), topic)
    client = AdminClient(lab.source.client_settings())
    client.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    fill(0, mark="new-")
    seeds = tmp_path / "seeds.csv"
    seeds.write_text(f"topic,partition,position\n{topic},0,50\n{topic},1,50\n", encoding="utf-8")
    assert seed(flow, RunRequest(flow.name, "seed"), read_seed_file(seeds)).failed == ()
    assert lab.run(flow).records == 0
    assert lab.run(flow, **day(0)).records == 100
    assert len(copied()) == len(set(copied())) == 200
    assert len({receipt.source_topic_id for receipt in read_receipts(flow)}) == 2
