"""What may happen to a flow's state and to either side: each gives its named outcome, and the other partitions are copied."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.opened import acknowledge_losses, flow_status, seed
from tools.kafka import SandboxCluster, compare_topics, read_all
from tools.kafka.topics import delete_topics

from ferry.config import Flow, load_config
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import InlineLaneRunner, More
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import EXPIRED, LossReport, RunReport
from ferry.migration.positions import read_seed_file
from ferry.monitoring.verdict import verdict_of
from ferry.policy.naming import ledger_topic, state_topic

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]
NOW = datetime.now(UTC)


class Side:
    """Administration of one cluster, as an operator would do it with other tools."""

    def __init__(self, cluster: SandboxCluster) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def create(self, topic: str, partitions: int = 2, **config: str) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)

    def delete(self, *topics: str) -> None:
        delete_topics(self.cluster.client_settings(), *topics)

    def drop_records(self, topic: str, partition: int, before: int) -> None:
        for future in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(30)

    def configure(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for future in self.admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
        ).values():
            future.result(30)

    def produce(
        self, topic: str, count: int, *, partitions: int = 2, at: datetime | None = None, key: bytes | None = b"k", size: int = 10
    ) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 5, "message.max.bytes": 4_000_000})
        for number in range(count):
            stamp = {} if at is None else {"timestamp": int(at.timestamp() * 1000) + number}
            producer.produce(topic, value=f"{number}".encode().ljust(size, b"."), key=key, partition=number % partitions, **stamp)
        assert producer.flush(60) == 0


@pytest.fixture
def source(source_cluster: SandboxCluster) -> Side:
    return Side(source_cluster)


@pytest.fixture
def target(target_cluster: SandboxCluster) -> Side:
    return Side(target_cluster)


@pytest.fixture
def topic(source: Side, topic_factory: Callable[..., str]) -> str:
    return topic_factory(source.cluster, partitions=2)


@pytest.fixture
def flow(flow_factory: Callable[..., Flow], topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}.*")


def remote(flow: Flow, topic: str) -> str:
    return f"{flow.source.alias}.{topic}"


def equal(flow: Flow, source: Side, target: Side, *topics: str) -> bool:
    return compare_topics(source.cluster.bootstrap, target.cluster.bootstrap, {topic: remote(flow, topic) for topic in topics}).equal


def errors(report: RunReport) -> set[str]:
    return {failure.error for failure in report.failed}


def count(side: Side, topic: str) -> int:
    return sum(len(partition) for partition in read_all(side.cluster.bootstrap, topic))


def test_a_deleted_group_is_made_up_for_by_the_heads(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 100)
    run_flow(flow)
    target.admin.delete_consumer_groups([flow.position_group])[flow.position_group].result(30)
    assert run_flow(flow).records == 0
    source.produce(topic, 60)
    assert run_flow(flow).records == 60
    assert equal(flow, source, target, topic)


def test_a_group_that_expires_between_plan_and_lanes_is_made_up_for_by_the_heads(
    flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    group = flow.position_group

    class Expiring(InlineLaneRunner):
        def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], _: More = list) -> Generator[LaneResult]:
            target.admin.delete_consumer_groups([group])[group].result(30)
            return super().run(opened, job, tasks)

    source.produce(topic, 100)
    run_flow(flow)
    source.produce(topic, 60)
    report = run_flow(flow, runner=Expiring())
    assert (report.failed, report.records) == ((), 60)
    assert equal(flow, source, target, topic)


@pytest.mark.long
def test_moved_offsets_are_refused_until_a_seed_settles_them(
    flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow, tmp_path: Path
) -> None:
    source.produce(topic, 100)
    run_flow(flow)
    group = flow.position_group
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(remote(flow, topic), 0, 7)])
    target.admin.alter_consumer_group_offsets([moved])[group].result(30)
    source.produce(topic, 20)
    report = run_flow(flow)
    assert (report.exit_code, errors(report)) == (ExitCode.PARTLY_FAILED, {"PositionDisagrees"})
    assert report.records == 10  # the other partition went on
    seeds = tmp_path / "seeds.csv"
    seeds.write_text(f"topic,partition,position\n{topic},0,50\n")
    assert seed(flow, RunRequest(flow.name, "seed-1"), read_seed_file(seeds)).exit_code is ExitCode.DONE
    assert run_flow(flow).records == 10
    assert equal(flow, source, target, topic)


@pytest.mark.long
@pytest.mark.parametrize("lost", [state_topic, ledger_topic])
def test_lost_state_or_ledger_is_refused_until_a_seed_settles_it(
    lost: Callable[[str], str], flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow, tmp_path: Path
) -> None:
    source.produce(topic, 100)
    run_flow(flow)
    target.delete(lost(flow.source.alias))
    source.produce(topic, 30)
    report = run_flow(flow)
    assert (report.records, errors(report)) == (0, {"PositionDisagrees"})
    seeds = tmp_path / "seeds.csv"
    seeds.write_text(f"topic,partition,position\n{topic},0,50\n{topic},1,50\n")
    assert seed(flow, RunRequest(flow.name, "seed-1"), read_seed_file(seeds)).exit_code is ExitCode.DONE
    assert run_flow(flow).records == 30
    assert equal(flow, source, target, topic)


@pytest.mark.long
def test_lanes_and_tasks_may_change(flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    for lanes in (8, 3, 12, 1):
        source.produce(topic, 40)
        flow = flow_factory(f"A->B.topics = {topic}", f"A->B.ferry.lanes = {lanes}", f"A->B.tasks.max = {lanes}", "A.client.id = c")
        assert run_flow(flow).records == 40
    assert equal(flow, source, target, topic)


def test_a_recreated_remote_topic_waits_for_a_decision(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    flow = flow_factory(f"A->B.topics = {topic}")
    source.produce(topic, 100)
    run_flow(flow)
    target.delete(remote(flow, topic))
    assert errors(run_flow(flow)) == {"TargetRecreated"}
    assert remote(flow, topic) not in target.admin.list_topics(timeout=10).topics
    target.create(remote(flow, topic))
    assert errors(run_flow(flow)) == {"TargetRecreated"}
    again = flow_factory(f"A->B.topics = {topic}", "A->B.ferry.on.target.recreate = restart")
    assert run_flow(again).records == 100
    assert equal(again, source, target, topic)
    assert run_flow(again).records == 0


def test_a_recreated_source_topic_waits_for_a_decision(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    flow = flow_factory(f"A->B.topics = {topic}.*")
    source.create(f"{topic}-b")
    source.produce(topic, 100)
    run_flow(flow)
    source.delete(topic)
    source.create(topic)
    source.produce(topic, 30)
    source.produce(f"{topic}-b", 20)
    report = run_flow(flow)
    assert (errors(report), report.records) == ({"SourceRecreated"}, 20)
    assert flow_status(flow).lag.records == 30
    again = flow_factory(f"A->B.topics = {topic}.*", "A->B.ferry.on.recreate = restart")
    assert run_flow(again).records == 30
    assert count(target, remote(again, topic)) == 130
    assert run_flow(again).records == 0


def test_expired_records_are_a_named_loss_once(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 100)
    run_flow(flow)
    source.produce(topic, 100)
    source.drop_records(topic, 0, 80)
    said = flow_status(flow)
    assert (said.expired, verdict_of(said, 0).exit_code) == ((LossReport(topic, 0, 50, 80, EXPIRED.format(80)),), ExitCode.DATA_LOST)
    report = run_flow(flow)
    assert (report.exit_code, report.losses) == (ExitCode.DATA_LOST, said.expired)
    assert flow_status(flow).expired == ()
    assert [(loss.topic, loss.partition, loss.upstream_start, loss.upstream_end) for loss in report.losses] == [(topic, 0, 50, 80)]
    assert report.records == 70
    assert run_flow(flow).exit_code is ExitCode.DONE
    assert len(acknowledge_losses(flow)) == 1
    assert acknowledge_losses(flow) == []


def test_a_partition_that_expired_completely_is_a_loss_too(flow: Flow, topic: str, source: Side, run_flow: RunFlow) -> None:
    run_flow(flow)  # sees both partitions while they are empty
    source.produce(topic, 100)
    source.drop_records(topic, 1, -1)
    report = run_flow(flow)
    assert [(loss.partition, loss.upstream_start, loss.upstream_end) for loss in report.losses] == [(1, 0, 50)]
    assert report.records == 50


def test_refused_batches_stop_their_partition_only(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 10)
    run_flow(flow)
    target.configure(remote(flow, topic), "max.message.bytes", "2000")
    source.produce(topic, 1, partitions=1, size=100_000)
    source.produce(topic, 40)
    report = run_flow(flow)
    assert errors(report) == {"BatchRefused"}
    assert "max.message.bytes" in report.failed[0].problem
    assert report.records == 20
    target.configure(remote(flow, topic), "max.message.bytes", "1000000")
    assert run_flow(flow).records == 21
    assert equal(flow, source, target, topic)


def test_batches_above_the_limit_are_halved(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 2)
    run_flow(flow)
    target.configure(remote(flow, topic), "max.message.bytes", "3000")
    source.produce(topic, 2_000, size=200)
    assert run_flow(flow).exit_code is ExitCode.DONE
    assert equal(flow, source, target, topic)


def test_timestamps_out_of_the_targets_limits(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 10)
    run_flow(flow)
    target.configure(remote(flow, topic), "message.timestamp.before.max.ms", "1000000")
    source.produce(topic, 1, partitions=1, at=NOW - timedelta(days=30))
    source.produce(topic, 1, partitions=1)
    report = run_flow(flow)
    assert errors(report) == {"BatchRefused"}
    assert "message.timestamp" in report.failed[0].problem


def test_a_remote_topic_that_replaces_timestamps_is_refused(flow: Flow, topic: str, source: Side, target: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 10)
    run_flow(flow)
    target.configure(remote(flow, topic), "message.timestamp.type", "LogAppendTime")
    source.produce(topic, 10)
    report = run_flow(flow)
    assert (errors(report), report.records) == ({"BatchRefused"}, 0)
    assert "message.timestamp.type" in report.failed[0].problem


def test_two_flows_do_not_write_one_topic(
    flow_factory: Callable[..., Flow],
    topic: str,
    source: Side,
    target: Side,
    run_flow: RunFlow,
    cluster_factory: Callable[..., SandboxCluster],
) -> None:
    identity = "A->B.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    first = flow_factory(f"A->B.topics = {topic}", identity)
    source.produce(topic, 10)
    assert run_flow(first).records == 10
    other = Side(cluster_factory())
    other.create(topic)
    other.produce(topic, 10)
    alias = "other"
    text = (
        f"clusters = {alias}, B\n{alias}.bootstrap.servers = {other.cluster.bootstrap}\nB.bootstrap.servers = {target.cluster.bootstrap}\n"
        f"{alias}->B.enabled = true\nreplication.factor = 1\n{alias}->B.topics = {topic}\n"
        f"{alias}->B.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    )
    file = Path(other.cluster.directory) / "second.properties"
    file.write_text(text)
    assert errors(run_flow(load_config(file).flows[0])) == {"AlreadyClaimed"}
    assert count(target, topic) == 10


def test_start_policies(flow_factory: Callable[..., Flow], topic: str, source: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 40, at=NOW - timedelta(hours=2))
    source.produce(topic, 20, at=NOW - timedelta(hours=1))
    latest = flow_factory(f"A->B.topics = {topic}", "A->B.ferry.start = latest")
    assert run_flow(latest).records == 0
    source.produce(topic, 6)
    assert run_flow(latest).records == 6


def test_a_start_time_and_an_end_time(flow_factory: Callable[..., Flow], topic: str, source: Side, run_flow: RunFlow) -> None:
    source.produce(topic, 40, at=NOW - timedelta(hours=3))
    source.produce(topic, 20, at=NOW - timedelta(hours=2))
    source.produce(topic, 10, at=NOW - timedelta(hours=1))
    flow = flow_factory(f"A->B.topics = {topic}", f"A->B.ferry.start = {(NOW - timedelta(hours=2, minutes=30)).isoformat()}")
    assert run_flow(flow, until=NOW - timedelta(hours=1, minutes=30)).records == 20
    assert run_flow(flow).records == 10


@pytest.mark.long
def test_a_backfill_copies_just_the_missing_history_once(
    flow_factory: Callable[..., Flow], topic: str, source: Side, target: Side, run_flow: RunFlow
) -> None:
    for hours in (5, 4, 3, 2):
        source.produce(topic, 20, at=NOW - timedelta(hours=hours))
    flow = flow_factory(f"A->B.topics = {topic}", f"A->B.ferry.start = {(NOW - timedelta(hours=2, minutes=30)).isoformat()}")
    assert run_flow(flow).records == 20
    window = {"since": NOW - timedelta(hours=4, minutes=30), "until": NOW - timedelta(hours=3, minutes=30)}
    assert run_flow(flow, **window).records == 20
    assert run_flow(flow, **window).records == 0
    everything = {"since": NOW - timedelta(hours=6), "until": NOW}
    assert run_flow(flow, **everything).records == 40
    assert run_flow(flow, **everything).records == 0
    assert run_flow(flow).records == 0
    seen = [sorted(record.timestamp for record in partition) for partition in read_all(target.cluster.bootstrap, remote(flow, topic))]
    wanted = [sorted(record.timestamp for record in partition) for partition in read_all(source.cluster.bootstrap, topic)]
    assert seen == wanted


def test_a_compacted_remote_topic_refuses_history(flow_factory: Callable[..., Flow], topic: str, source: Side, run_flow: RunFlow) -> None:
    source.configure(topic, "cleanup.policy", "compact")
    source.produce(topic, 20, at=NOW - timedelta(hours=4))
    flow = flow_factory(f"A->B.topics = {topic}", "A->B.ferry.start = latest")
    run_flow(flow)
    report = run_flow(flow, since=NOW - timedelta(hours=5), until=NOW)
    assert (errors(report), report.records) == ({"BackfillRefused"}, 0)
