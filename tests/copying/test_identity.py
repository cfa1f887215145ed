"""Active/active under names that stay as they are in both directions: nothing goes round."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tests.opened import append_records, assemble_report, compact_ledger, copy_run, declare_foreign, flow_status, seed, translated_groups
from tools.kafka import SandboxCluster, read_all
from tools.kafka.topics import delete_topics

from ferry.config import Flow, load_config
from ferry.copying import ledger_compaction as upkeep
from ferry.copying.guard_reading import guarded
from ferry.copying.lane_messages import CopyJob, LaneResult, LaneTask
from ferry.copying.lane_runner import InlineLaneRunner, More
from ferry.copying.request import RunRequest
from ferry.copying.segment_end import TransactionEnd
from ferry.errors import ConfigError, ExitCode
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import RunReport
from ferry.ledger.state import FlowRecord, encode_state
from ferry.migration.positions import GivenPositions
from ferry.policy.naming import ledger_topic, state_topic
from ferry.sandbox.sample_data import commit
from ferry.syncs.translated_groups import TranslatedGroups
from ferry.translation.translated import Inexact

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

    def run(self, opened: OpenFlow, job: CopyJob, tasks: Sequence[LaneTask], _: More = list) -> Generator[LaneResult]:
        prepare = TransactionEnd.prepare

        async def killed(self_: TransactionEnd, *arguments: object) -> None:
            await prepare(self_, *arguments)  # type: ignore[arg-type]
            self.after -= 1
            if self.after < 0:
                self.struck.append(job.flow.name)
                raise KilledError

        with self.patch.context() as patch:
            patch.setattr(TransactionEnd, "prepare", killed)
            yield from super().run(opened, job, tasks)


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
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 2, "batch.num.messages": 7, "enable.idempotence": True}
        )
        for number in range(self.produced, self.produced + count):
            producer.produce(self.topic, value=f"{self.name}{number}".encode(), partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(30) == 0
        self.produced += count

    def look(self) -> None:
        for number, records in enumerate(read_all(self.cluster.bootstrap, self.topic)):
            self.seen[number].update({record.offset: record.value or b"" for record in records})

    def delete_below(self, offsets: Mapping[tuple[str, int], int]) -> None:
        self.look()
        client = AdminClient(self.cluster.client_settings())
        below = [TopicPartition(*key, end) for key, end in offsets.items() if key[0] == self.topic]
        for future in client.delete_records(below).values():
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


def copy(flow: Flow, runner: InlineLaneRunner | None = None, **interval: datetime) -> RunReport:
    """The copying half of a run, without a look before; topics are there."""
    request = RunRequest(flow.name, f"run-{secrets.token_hex(4)}", backfill="since" in interval, **interval)  # type: ignore[arg-type]
    copy_run(flow, request, runner or InlineLaneRunner(), lambda _: None)
    return assemble_report(flow, request)


def positions(flow: Flow) -> dict[tuple[str, int], int]:
    """Of all topics: a flow also copies the heartbeats that other tests left on the cluster."""
    return {(entry.topic, entry.partition): entry.position for entry in flow_status(flow).partitions}


@pytest.mark.long
def test_ten_rounds_with_kills_upkeep_and_retention(pair: Pair, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record exactly once on each side, in its origin's order, and nothing ever goes round."""
    monkeypatch.setattr(upkeep, "YOUNG_MILLISECONDS", -60_000)
    chance = random.Random(7)
    struck: list[str] = []
    merged = 0
    report = run_flow(pair.back)
    assert {failure.error for failure in report.failed} == {"PositionDisagrees"}, "nobody has said that what is on A was produced there"
    assert "ferry.on.unexplained=local" in report.failed[0].problem
    for flow in (pair.there, pair.back):  # the settings of one say so; from then on that is settled for both directions
        assert run_flow(flow).exit_code is ExitCode.DONE
    for number in range(10):
        pair.a.write(chance.randrange(1, 60))
        pair.b.write(chance.randrange(1, 60))
        for flow in chance.sample([pair.there, pair.back], 2):
            if number % 3 == 1:
                runner = KilledRunner(monkeypatch, chance.randrange(3))
                with contextlib.suppress(KilledError):
                    copy(flow, runner)
                struck += runner.struck
            else:
                assert copy(flow).exit_code is ExitCode.DONE
        if number % 4 == 2:
            for flow in (pair.there, pair.back):
                merged += len(compact_ledger(flow).merged)
        if number % 4 == 3:
            pair.a.delete_below(positions(pair.there))
            pair.b.delete_below(positions(pair.back))
    assert len(set(struck)) == 2
    assert merged
    left_out = 0
    for flow in (pair.there, pair.back, pair.there, pair.back):
        report = copy(flow)
        assert (report.exit_code, report.losses) == (ExitCode.DONE, ())
        left_out += report.from_target
    assert left_out
    assert_once(pair.a, pair.b)
    assert [copy(flow).records for flow in (pair.there, pair.back)] == [0, 0]


def both_done(pair: Pair, run_flow: RunFlow) -> None:
    for flow in (pair.there, pair.back):
        assert run_flow(flow).exit_code is ExitCode.DONE


def done(*flows: Flow, **interval: datetime) -> int:
    """Copies by all these flows; how many records were left out."""
    reports = [copy(flow, **interval) for flow in flows]
    assert [report.exit_code for report in reports] == [ExitCode.DONE] * len(flows)
    return sum(report.from_target for report in reports)


@pytest.mark.long
def test_a_run_that_follows_knows_what_was_written_between_its_end_and_its_look_into_the_ledger(
    pair: Pair, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_done(pair, run_flow)
    pair.b.write(30)
    written: list[int] = []

    def overtaken(opened: OpenFlow, *arguments: Any, **options: Any) -> Any:
        if opened.flow is pair.there and not written:
            written.append(copy(pair.back).records)
        return guarded(opened, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr("ferry.copying.snapshot.guarded", overtaken)
        assert copy(pair.there, follow_until=datetime.now(UTC) + timedelta(seconds=10)).exit_code is ExitCode.DONE
    assert written == [30]
    assert_once(pair.a, pair.b)


@pytest.mark.long
def test_what_the_other_flow_writes_behind_the_bound_waits_for_the_next_run(
    pair: Pair, run_flow: RunFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other flow commits after this one has read its ledger, and before it copies."""
    both_done(pair, run_flow)
    pair.b.write(30)

    def overtaken(opened: OpenFlow, *arguments: Any, **options: Any) -> Any:
        found = guarded(opened, *arguments, **options)
        if opened.flow is pair.there:
            assert copy(pair.back).records == 30
        return found

    with monkeypatch.context() as patch:
        patch.setattr("ferry.copying.snapshot.guarded", overtaken)
        done(pair.there)
    assert done(pair.there) == 30
    assert_once(pair.a, pair.b)


@pytest.mark.long
def test_what_may_not_run_together_is_refused(pair: Pair, run_flow: RunFlow, tmp_path: Path) -> None:
    """Whatever file the other direction is in: what it left on the source is what counts."""
    both_done(pair, run_flow)
    with pytest.raises(ConfigError, match=rf"transaction.producer=true for {pair.back.name} "):
        run_flow(replace(pair.back, exactly_once=False))
    record = FlowRecord(pair.back.name, pair.back.lanes, exactly_once=False)  # as an at-least-once run on another machine leaves it
    append_records(pair.there.source, {state_topic(pair.there.target.alias): [encode_state(record)]})
    with pytest.raises(ConfigError, match=rf"{pair.back.name} writes to topic {pair.a.topic} too, .* for {pair.back.name} "):
        run_flow(pair.there)
    append_records(pair.there.source, {state_topic(pair.there.target.alias): [encode_state(replace(record, exactly_once=True))]})
    config = tmp_path / "other.properties"
    text = (tmp_path / "mm2.properties").read_text()
    config.write_text(text.replace(pair.back.source.alias, "west"))
    with pytest.raises(ConfigError, match=rf"the cluster called west here is called {pair.back.source.alias} by the flow"):
        run_flow(load_config(config).flows[0])
    alias = pair.there.source.alias
    with pytest.raises(ConfigError, match=rf"is copied back by flow {pair.there.name}, which should be called {alias}->west"):
        run_flow(load_config(config).flows[1])
    one = text.replace(pair.b.cluster.bootstrap, pair.a.cluster.bootstrap.replace("127.0.0.1", "localhost"))
    config.write_text(one)
    with pytest.raises(ConfigError, match="are the same cluster"):
        run_flow(load_config(config).flows[0])


@pytest.mark.long
def test_a_ledger_that_was_deleted_stops_the_other_flow_until_somebody_has_said_what_it_wrote(pair: Pair, run_flow: RunFlow) -> None:
    both_done(pair, run_flow)
    pair.b.write(10)
    done(pair.back)
    delete_topics(pair.a.cluster.client_settings(), ledger_topic(pair.there.target.alias))
    report = copy(pair.there)
    assert [failure.error for failure in report.failed] == ["OriginUnclear"] * PARTITIONS
    assert "ferry seed --foreign" in report.failed[0].problem
    seed(pair.back, RunRequest(pair.back.name, "seed-1"), GivenPositions("operator: file", positions(pair.back), binding=True))
    report = copy(pair.there)
    assert [failure.error for failure in report.failed] == ["OriginUnclear"] * PARTITIONS, "nobody has said yet what came from B"
    declared = declare_foreign(pair.back, RunRequest(pair.back.name, "seed-2"))
    assert (declared.exit_code, declared.failed) == (ExitCode.DONE, ())
    pair.a.write(10)
    assert done(pair.there, pair.back, pair.there) > 0
    assert_once(pair.a, pair.b)


def test_a_side_that_was_lost_gets_its_own_records_back(pair: Pair, run_flow: RunFlow, topic_factory: Callable[..., str]) -> None:
    """What came from a topic that is no more is not on today's topic: it is copied like everything else, and does not go round."""
    both_done(pair, run_flow)
    done(pair.there, pair.back)
    delete_topics(pair.b.cluster.client_settings(), pair.b.topic)
    topic_factory(pair.b.cluster, partitions=PARTITIONS, name=pair.b.topic)
    pair.b.seen = [{} for _ in range(PARTITIONS)]
    pair.b.write(10)
    there, back = replace(pair.there, on_target_recreate="restart"), replace(pair.back, on_recreate="restart")
    for flow in (there, back, there, back):
        assert run_flow(flow).exit_code is ExitCode.DONE
    assert_once(pair.a)
    pair.b.look()
    for origin in (pair.a, pair.b):
        assert [sorted(found) for found in pair.b.of(origin)] == [sorted(wanted) for wanted in expected(origin)]


def test_what_another_replicator_copied_never_goes_back(lab: Lab) -> None:
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    lab.topic(lab.target, partitions=PARTITIONS, name=topic)
    there, back = load_config(lab.config("B->A.enabled = true", IDENTITY, "ferry.lanes = 2", f"topics = {topic}")).flows
    a, b = Side("a", lab.source, topic), Side("b", lab.target, topic)
    a.write(30)
    Side("a", lab.target, topic).write(30)  # the other replicator's copy of them
    for flow in (there, back):
        assert {failure.error for failure in lab.run(flow).failed} == {"PositionDisagrees"}
    copied = {(topic, number): 15 for number in range(PARTITIONS)}
    assert seed(there, RunRequest(there.name, "seed-1"), GivenPositions("operator: file", copied, binding=True)).exit_code is ExitCode.DONE
    a.write(10)
    b.write(20)
    for flow in (there, back):
        assert lab.run(flow).exit_code is ExitCode.DONE
    done(there, back)
    assert_once(a, b)
    b.write(6)  # not copied yet when an operator seeds the flow that writes there: they are not declared with it
    seed(there, RunRequest(there.name, "seed-2"), GivenPositions("operator: file", positions(there), binding=True))
    done(back, there)
    assert_once(a, b)


def test_backfills_of_both_flows_bring_history_once(lab: Lab) -> None:
    """History from before the flows' starts, appended behind newer records on both sides, does not come back either."""
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    lab.topic(lab.target, partitions=PARTITIONS, name=topic)
    there, back = load_config(lab.config(*BOTH, f"topics = {topic}", "ferry.start = latest")).flows
    a, b = Side("a", lab.source, topic), Side("b", lab.target, topic)
    for side in (a, b):
        side.write(20)
    for flow in (there, back):
        assert lab.run(flow).records == 0
    for side in (a, b):
        side.write(10)
    interval = {"since": datetime(2020, 1, 1, tzinfo=UTC), "until": datetime(2100, 1, 1, tzinfo=UTC)}
    done(there, back, there, back, **interval)
    for side in (a, b):
        side.look()
        for origin in (a, b):
            assert [sorted(found) for found in side.of(origin)] == [sorted(wanted) for wanted in expected(origin)]


def test_a_group_that_moves_across_and_back_misses_nothing(pair: Pair, run_flow: RunFlow) -> None:
    group = f"g-{secrets.token_hex(4)}"
    both_done(pair, run_flow)
    done(pair.there)
    read = consume(pair.a, group, dict.fromkeys(range(PARTITIONS), 7), until=12)
    moved = translated_groups(pair.there, [group])
    assert any(entry.translation and entry.translation.reason is Inexact.MERGED for entry in moved.positions)
    pair.a.write(15)
    pair.b.write(15)
    done(pair.there, pair.back)
    read += consume(pair.b, group, images(moved), until=25)
    pair.a.write(15)
    pair.b.write(15)
    done(pair.back, pair.there, pair.back)
    home = translated_groups(pair.back, [group])
    read += consume(pair.a, group, images(home))
    pair.a.look()
    before = {value for records in pair.a.seen for offset, value in records.items() if offset < 7}
    everything = {value for side in (pair.a, pair.b) for partition in expected(side) for value in partition}
    assert before | set(read) == everything


def images(groups: TranslatedGroups) -> dict[int, int]:
    return {entry.partition: entry.translation.image for entry in groups.positions if entry.translation is not None}


def consume(side: Side, group: str, start: dict[int, int], until: int | None = None) -> list[bytes]:
    """What a consumer of the group reads from `start` on, up to `until` records of each partition; it commits where it stands."""
    settings = {**side.cluster.client_settings(), "group.id": group, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    values = []
    for number in range(PARTITIONS):
        consumer.assign([TopicPartition(side.topic, number, start[number])])
        found = 0
        while until is None or found < until:
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                break
            values.append(message.value())
            found += 1
        commit(consumer, consumer.position([TopicPartition(side.topic, number)]))
    consumer.close()
    return values
