"""Whether and when a sync is done, and what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.opened import append_records, carry_out, read_run_records, topic_reader

from ferry.config import Cluster, Flow
from ferry.config.settings import MirroringSettings
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.state import SyncDone, encode_state
from ferry.ledger.sync_outcome import LISTED, Change, SyncOutcome, WholeSyncFailure
from ferry.pipeline import syncs
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.brokers

FlowFactory = Callable[..., Flow]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Stands for every sync: notes whether it was a dry run, changes one thing."""
    seen: list[bool] = []

    def sync(_: OpenFlow, *, dry_run: bool) -> SyncOutcome:
        seen.append(dry_run)
        return SyncOutcome(changes=(Change("topic t", "set"),) * (LISTED + 1))

    monkeypatch.setattr(syncs, "FUNCTIONS", dict.fromkeys(SyncName, sync))
    return seen


@pytest.mark.long
def test_a_sync_is_done_once_in_its_interval_and_kept_for_the_report(flow_factory: FlowFactory, calls: list[bool]) -> None:
    flow = flow_factory()
    done = carry_out(flow, SyncName.CONFIGS, run_id="one")
    assert (done.sync, done.left_out) == ("configs", "")
    assert "sync.topic.configs.interval.seconds=600" in carry_out(flow, SyncName.CONFIGS, run_id="two").left_out
    assert not carry_out(flow, SyncName.ACLS, run_id="two").left_out
    assert not carry_out(flow, SyncName.CONFIGS, run_id="three", on_request=True).left_out
    assert calls == [False, False, False]
    kept = read_run_records(flow, "one").syncs["configs"]
    assert (kept["counts"]["changes"], len(kept["changes"])) == (LISTED + 1, LISTED)
    assert set(read_run_records(flow, "two").syncs) == {"configs", "acls"}


def test_an_interval_that_has_passed(flow_factory: FlowFactory, calls: list[bool]) -> None:
    flow = replace(flow_factory(), mirroring=MirroringSettings(sync_topic_configs_interval=0))
    carry_out(flow, SyncName.CONFIGS)
    carry_out(flow, SyncName.CONFIGS)
    assert len(calls) == 2


def test_a_sync_that_was_done_in_the_future_is_due(flow_factory: FlowFactory, calls: list[bool]) -> None:
    """A machine whose clock was ten minutes ahead did the last one."""
    flow = flow_factory()
    carry_out(flow, SyncName.CONFIGS)
    ahead = SyncDone(SyncName.CONFIGS.value, round((time.time() + 600) * 1000))
    append_records(flow.target, {flow.state_topic: [encode_state(ahead)]})
    assert not carry_out(flow, SyncName.CONFIGS, run_id="one").left_out
    assert len(calls) == 2


def test_a_dry_run_leaves_nothing_behind(flow_factory: FlowFactory, calls: list[bool]) -> None:
    flow = flow_factory()
    assert carry_out(flow, SyncName.CONFIGS, run_id="one", dry_run=True).dry_run
    assert calls == [True]
    with topic_reader(flow.target) as reader:
        assert reader.partitions(flow.state_topic) == ()


def test_a_sync_that_can_do_nothing_has_failed_and_is_due_again(flow_factory: FlowFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(_: OpenFlow, **_options: bool) -> SyncOutcome:
        raise ClusterUnreachable("cluster A: away")

    monkeypatch.setattr(syncs, "FUNCTIONS", dict.fromkeys(SyncName, sync))
    flow = flow_factory()
    (failure,) = carry_out(flow, SyncName.CONFIGS, run_id="one").failed
    assert str(failure) == "sync configs: ClusterUnreachable: cluster A: away"
    assert isinstance(failure, WholeSyncFailure)
    assert carry_out(flow, SyncName.CONFIGS, run_id="two").failed, "it was due"


def test_a_sync_that_cannot_be_written_down_still_tells_what_it_changed(flow_factory: FlowFactory, calls: list[bool]) -> None:
    flow = flow_factory()
    carry_out(flow, SyncName.CONFIGS)
    _refuse_records(flow.target, flow.state_topic)
    outcome = carry_out(flow, SyncName.CONFIGS, on_request=True)
    assert len(outcome.changes) == LISTED + 1
    (failure,) = outcome.failed
    assert (failure.what, outcome.exit_code) == ("sync configs", ExitCode.PARTLY_FAILED)
    assert "when it was done cannot be written down" in failure.problem
    assert flow.state_topic in failure.problem


def _refuse_records(cluster: Cluster, topic: str) -> None:
    """No record is small enough from here on."""
    smallest = ConfigEntry("max.message.bytes", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[smallest])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    # The controller has it at once, the broker a moment later. Until then a tombstone for a key that nobody has changes nothing.
    refused: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    while not refused:
        producer.produce(topic, key=b"nothing", on_delivery=lambda error, _: refused.append(error) if error else None)
        assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (SyncName.CONFIGS, "sync.topic.configs.enabled=false"),
        (SyncName.ACLS, "sync.topic.acls.enabled=false"),
        (SyncName.HEARTBEAT, "emit.heartbeats.enabled=false"),
        (SyncName.OFFSET_SYNCS, "emit.offset-syncs.enabled=false"),
        (SyncName.CHECKPOINTS, "emit.checkpoints.enabled=false"),
        (SyncName.GROUPS, "sync.group.offsets.enabled=false"),
        (SyncName.CONFIGS, "sync.topic.configs.interval.seconds=-1"),
    ],
)
def test_what_is_switched_off_is_left_out(flow_factory: FlowFactory, calls: list[bool], name: SyncName, line: str) -> None:
    assert carry_out(flow_factory(line), name).left_out == line
    assert calls == []
