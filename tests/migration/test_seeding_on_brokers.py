"""Seeds from MirrorMaker 2's offsets, from a group and from an operator's word, over records that are there already."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, Producer
from tests.conftest import Lab
from tests.opened import (
    append_records,
    declare_foreign,
    flow_status,
    plan_run,
    read_group_positions,
    read_mm2_positions,
    read_receipts,
    run_lease,
    seed,
    state_of,
    topic_reader,
)
from tools.kafka import SandboxCluster, read_all
from tools.kafka.groups import commit_offsets

from ferry.cli.changes import seed as seed_command
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, ExitCode, ReplicatorActive, Superseded
from ferry.ledger.receipts import BY_OPERATOR, ReceiptKind, encode_receipt
from ferry.ledger.run_report import RunReport
from ferry.ledger.state import encode_state
from ferry.ledger.topic_ids import NO_ID
from ferry.migration import mm2_positions
from ferry.migration.positions import GivenPositions
from ferry.migration.seeding import SeedOutcome

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]
TopicFactory = Callable[..., str]
RunFlow = Callable[[Flow], RunReport]
IDENTITY = "A->B.replication.policy.class = IdentityReplicationPolicy"


@pytest.fixture
def topic(lab: Lab) -> str:
    return lab.topic(lab.source, partitions=2)


@pytest.fixture
def flow(flow_factory: FlowFactory, topic: str) -> Flow:
    return flow_factory(f"A->B.topics = {topic}")


def request(flow: Flow) -> RunRequest:
    return RunRequest(flow.name, f"seed-{secrets.token_hex(4)}")


def fill(cluster: SandboxCluster, topic: str, first: int, count: int, partitions: tuple[int, ...] = (0, 1)) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
    for partition in partitions:
        for number in range(first, first + count):
            producer.produce(topic, key=b"%d" % number, value=b"v%d" % number, partition=partition)
    assert producer.flush(30) == 0


def values(cluster: SandboxCluster, topic: str) -> list[list[bytes | None]]:
    return [[record.value for record in partition] for partition in read_all(cluster.bootstrap, topic)]


def numbered(*ranges: tuple[int, int]) -> list[bytes]:
    return [b"v%d" % number for start, end in ranges for number in range(start, end)]


def foreign(flow: Flow) -> dict[int, tuple[int, int, int]]:
    found = [receipt for receipt in read_receipts(flow) if receipt.kind is ReceiptKind.FOREIGN]
    return {receipt.partition: (receipt.upstream_start, receipt.upstream_end, receipt.downstream_end) for receipt in found}


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mm2_positions, "WATCH_SECONDS", 0.6)


def write_offsets(cluster: SandboxCluster, name: str, *lines: tuple[str, str | None]) -> None:
    """As Connect does it: the producer's own partitioner decides by the key's bytes."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for key, value in lines:
        producer.produce(name, key=key.encode(), value=None if value is None else value.encode())
    assert producer.flush(30) == 0


def entry(flow: Flow, topic: str, partition: int, connector: str = "MirrorSourceConnector") -> str:
    return f'["{connector}",{{"cluster":"{flow.source.alias}","partition":{partition},"topic":"{topic}"}}]'


@pytest.fixture
def mm2_stopped(flow: Flow, topic: str, lab: Lab) -> str:
    """MM2 copied 60 and 40 of 100 records a partition, and is gone; its offsets topic."""
    offsets = f"mm2-offsets.{flow.source.alias}.internal"
    lab.topic(lab.target, partitions=3, config={"cleanup.policy": "compact"}, name=offsets)
    lab.topic(lab.target, partitions=2, name=f"{flow.source.alias}.{topic}")
    fill(lab.source, topic, 0, 100)
    fill(lab.target, f"{flow.source.alias}.{topic}", 0, 60, (0,))
    fill(lab.target, f"{flow.source.alias}.{topic}", 0, 40, (1,))
    write_offsets(
        lab.target,
        offsets,
        (entry(flow, topic, 0), '{"offset":9}'),
        (entry(flow, topic, 1), '{"offset":39}'),
        (entry(flow, topic, 0), '{"offset":59}'),
        (entry(flow, "gone", 0), '{"offset":59}'),
        (entry(flow, "removed", 0), '{"offset":59}'),
        (entry(flow, "removed", 0), None),
        (entry(replace(flow, source=replace(flow.source, alias="other")), topic, 0), '{"offset":99}'),
        ('["MirrorCheckpointConnector",{"partition":3,"topic":"A.t","group":"g1"}]', '{"offset":0}'),
    )
    return offsets


@pytest.mark.long
@pytest.mark.usefixtures("quick_watch", "mm2_stopped")
def test_where_mirrormaker_2_stopped(flow: Flow, topic: str, lab: Lab) -> None:
    given = read_mm2_positions(flow)
    assert {key: position for key, position in given.positions.items() if key[0] == topic} == {(topic, 0): 60, (topic, 1): 40}
    assert "without exactly-once" in given.notices[0]
    looked = seed(flow, request(flow), given, dry_run=True)
    assert [(written.position, written.before, written.foreign) for written in looked.seeds] == [
        (60, None, ((0, 60, 60),)),
        (40, None, ((0, 40, 40),)),
    ]
    assert {skipped.what for skipped in looked.left_out} == {"gone-0", "removed-0"}
    assert not {flow.state_topic, flow.ledger_topic} & names(lab.target)
    written = seed(flow, request(flow), given)
    assert (written.exit_code, written.seeds, written.left_out) == (ExitCode.DONE, looked.seeds, looked.left_out)
    assert lab.run(flow).records == 100
    fill(lab.source, topic, 100, 10)
    assert lab.run(flow).records == 20
    assert values(lab.target, f"{flow.source.alias}.{topic}") == [numbered((0, 110))] * 2
    assert foreign(flow) == {0: (0, 60, 60), 1: (0, 40, 40)}
    again = seed(flow, request(flow), given)
    assert again.seeds == ()
    assert all("at 110" in skipped.reason for skipped in again.left_out if skipped.what.startswith(topic))
    assert lab.run(flow).records == 0


def names(cluster: SandboxCluster) -> set[str]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "look"})
    try:
        return set(consumer.list_topics(timeout=15).topics)
    finally:
        consumer.close()


@pytest.mark.usefixtures("quick_watch")
def test_a_replicator_that_still_writes_is_refused(
    flow: Flow, topic: str, mm2_stopped: str, target_cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mm2_positions, "WATCH_SECONDS", 1.0)
    writes = repeated(lambda: write_offsets(target_cluster, mm2_stopped, (entry(flow, topic, 0), '{"offset":59}')))
    with writes, pytest.raises(ReplicatorActive, match=rf"new offsets in {mm2_stopped} .*stop its processes"):
        read_mm2_positions(flow)
    copies = repeated(lambda: fill(target_cluster, f"{flow.source.alias}.{topic}", 200, 1))
    with copies, pytest.raises(ReplicatorActive, match=rf"new records in {flow.source.alias}\.{topic} within"):
        read_mm2_positions(flow)
    # Another connector's offsets on the same Connect cluster are its own affair.
    with repeated(lambda: write_offsets(target_cluster, mm2_stopped, ('["jdbc",{"table":"x"}]', '{"offset":1}'))):
        assert read_mm2_positions(flow).positions[topic, 0] == 60


@contextmanager
def repeated(act: Callable[[], None]) -> Iterator[None]:
    """`act` again and again in another thread."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.1):
            act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_no_offsets_topic_of_that_name(flow: Flow) -> None:
    with pytest.raises(ArgumentError, match=rf"has no topic mm2-offsets\.{flow.source.alias}\.internal: .*--offsets-topic"):
        read_mm2_positions(flow)


@pytest.mark.parametrize("options", [{}, {"from_mm2": True, "foreign": True}, {"foreign": True, "connector": "x"}])
def test_options_that_do_not_go_together(flow: Flow, options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="--from-"):
        seed_command("nowhere.properties", flow.name, **options)  # type: ignore[arg-type]


class Copier:
    """As MirrorMaker 1 works: a consumer in a group at the source, and a producer to the same topic at the target."""

    def __init__(self, source: SandboxCluster, target: SandboxCluster, group: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": source.bootstrap,
                "group.id": group,
                "client.id": "mirror-1",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 5})

    def copy(self, topic: str, records: int, *, commit: bool = True) -> None:
        self._consumer.subscribe([topic])
        for _ in range(records):
            message = self._consumer.poll(30)
            assert message is not None
            assert message.error() is None
            self._producer.produce(topic, key=message.key(), value=message.value(), partition=message.partition())
        assert self._producer.flush(30) == 0
        if commit:
            self._consumer.commit(asynchronous=False)

    def stop(self) -> None:
        self._consumer.close()


@pytest.mark.long
def test_where_mirrormaker_1_stopped(topic: str, lab: Lab) -> None:
    flow = lab.flow(f"A->B.topics = {topic}", IDENTITY)
    group = f"mirror-{topic}"
    lab.topic(lab.target, partitions=2, name=topic)
    fill(lab.source, topic, 0, 100, (0,))
    copier = Copier(lab.source, lab.target, group)
    copier.copy(topic, 100)
    with pytest.raises(ReplicatorActive, match=rf"group {group} on cluster {flow.source.alias} is .*mirror-1 at .*stop them"):
        read_group_positions(flow, group)
    fill(lab.source, topic, 100, 30, (0,))
    copier.copy(topic, 30, commit=False)
    copier.stop()
    outcome = seed(flow, request(flow), read_group_positions(flow, group))
    assert [(written.partition, written.position, written.foreign) for written in outcome.seeds] == [(0, 100, ((0, 100, 130),))]
    assert [(skipped.what, "has no offset for it" in skipped.reason) for skipped in outcome.left_out] == [(f"{topic}-1", True)]
    fill(lab.source, topic, 130, 20, (0,))
    fill(lab.source, topic, 0, 5, (1,))
    assert lab.run(flow).records == 55
    # What was not committed is there twice, nothing else, and nothing is missing.
    assert values(lab.target, topic) == [numbered((0, 130), (100, 150)), numbered((0, 5))]


def test_a_group_that_does_not_exist(flow: Flow) -> None:
    with pytest.raises(ArgumentError, match="has committed no offsets"):
        read_group_positions(flow, "nobody")


@pytest.mark.long
def test_external_records_are_declared(flow: Flow, topic: str, lab: Lab) -> None:
    remote = f"{flow.source.alias}.{topic}"
    lab.topic(lab.target, partitions=2, name=remote)
    fill(lab.source, topic, 0, 10)
    fill(lab.target, remote, 500, 7, (1,))
    assert {failure.partition for failure in lab.run(flow).failed} == {1}
    assert brief(declare_foreign(flow, request(flow))) == [(1, 0, ((0, 0, 7),))]
    assert lab.run(flow).records == 10
    # Behind Ferry's own records; the other partition's log ends with the mark of Ferry's transaction, which is no record.
    fill(lab.target, remote, 600, 5, (1,))
    assert brief(declare_foreign(flow, request(flow), dry_run=True)) == [(1, 10, ((10, 10, 23),))]
    assert brief(declare_foreign(flow, request(flow))) == [(1, 10, ((10, 10, 23),))]
    assert brief(declare_foreign(flow, request(flow))) == []
    fill(lab.source, topic, 10, 3)
    report = lab.run(flow)
    assert (report.records, report.exit_code) == (6, ExitCode.DONE)
    assert values(lab.target, remote) == [numbered((0, 13)), numbered((500, 507), (0, 10), (600, 605), (10, 13))]


def brief(outcome: SeedOutcome) -> list[tuple[int, int, tuple[tuple[int, int, int], ...]]]:
    assert outcome.exit_code is ExitCode.DONE
    return [(written.partition, written.position, written.foreign) for written in outcome.seeds]


@pytest.mark.long
def test_bad_positions_change_nothing_and_good_ones_supersede(flow: Flow, topic: str, lab: Lab) -> None:
    fill(lab.source, topic, 0, 10)
    lab.run(flow)
    with run_lease(flow) as hold:
        with pytest.raises(ArgumentError, match=rf"{topic}-1: position 11 is outside"):
            seed(flow, request(flow), GivenPositions("somebody", {(topic, 0): 10, (topic, 1): 11}))
        hold.confirm()
        assert seed(flow, request(flow), GivenPositions("an operator", {(topic, 0): 4}, binding=True)).exit_code is ExitCode.DONE
        with pytest.raises(Superseded):
            hold.confirm()
    assert lab.run(flow).records == 6


def test_committed_offsets_of_topics_that_are_not_copied(flow: Flow, topic: str, source_cluster: SandboxCluster) -> None:
    fill(source_cluster, topic, 0, 10)
    commit_offsets(source_cluster.client_settings(), f"g-{topic}", {(topic, 0): 3})
    assert read_group_positions(flow, f"g-{topic}").positions == {(topic, 0): 3}


def test_a_source_topic_that_gets_its_first_id(flow: Flow, topic: str, lab: Lab) -> None:
    """By an upgrade of its cluster to 2.8: what the seed passes over is not missing, and a backfill does not copy it again."""
    fill(lab.source, topic, 0, 50)
    assert lab.run(flow).records == 100
    with topic_reader(flow.target) as reader:
        width = len(reader.partitions(flow.ledger_topic))
    for receipt in read_receipts(flow):
        ledger = {flow.ledger_topic: [encode_receipt(replace(receipt, source_topic_id=NO_ID)), (encode_receipt(receipt)[0], None)]}
        append_records(flow.target, ledger, partition=receipt.key.share(width))
    heads = state_of(flow, stable=False).heads
    append_records(flow.target, {flow.state_topic: [encode_state(replace(head, source_topic_id=NO_ID)) for head in heads.values()]})
    (failure, _) = plan_run(flow, request(flow)).failed
    assert "settle it with ferry seed --from-file at position 50" in failure.problem
    positions = {(topic, partition): 50 for partition in range(2)}
    seed(flow, request(flow), GivenPositions(f"{BY_OPERATOR}: the message", positions, binding=True))
    assert flow_status(flow).missing == ()
    day = timedelta(days=1)
    again = replace(request(flow), since=datetime.now(UTC) - day, until=datetime.now(UTC) + day, backfill=True)
    assert plan_run(flow, again).partitions[0].segments == ()
    fill(lab.source, topic, 50, 5)
    assert lab.run(flow).records == 10
    assert values(lab.target, f"{flow.source.alias}.{topic}") == [numbered((0, 55))] * 2
