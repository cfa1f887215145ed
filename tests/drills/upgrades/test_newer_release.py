"""What a newer Ferry wrote in a newer format is refused by everything that reads it, and nothing is written or fenced."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.log_ends import log_ends
from tests.opened import (
    acknowledge_losses,
    append_records,
    assemble_report,
    carry_out,
    compact_ledger,
    copy_run,
    export_offsets,
    flow_status,
    plan_run,
    prepare_run,
    run_lease,
    seed,
    topic_reader,
    translated_groups,
    verify,
)
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets
from tools.kafka.topics import delete_topics
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.config import Flow, load_config
from ferry.copying import ledger_compaction as upkeep
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import NewerFormat
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import Receipt, decode_receipt, encode_receipt
from ferry.ledger.run_report import RunReport
from ferry.ledger.state import FlowRecord, encode_state
from ferry.migration.positions import read_seed_file
from ferry.policy.naming import ledger_topic, runs_topic, state_topic
from ferry.syncs.names import SyncName
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest

pytestmark = pytest.mark.brokers

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
DAY = 24 * 3600 * 1000


class Both:
    """A flow in both directions under one name, of which `A->B` has copied a topic that a group has read."""

    def __init__(self, config: Path, topic: str, source: SandboxCluster, target: SandboxCluster) -> None:
        self.config, self.topic, self.source, self.target = config, topic, source, target
        self.flow, self.back = load_config(config).flows

    def request(self) -> RunRequest:
        return RunRequest(self.flow.name, "of-the-older-release")

    def append(self, topic: str, key: bytes, value: bytes, *, partition: int = -1, at: int = 0) -> None:
        append_records(self.flow.target, {topic: [(key, value)]}, partition=partition, timestamp=at)

    def ends(self) -> dict[str, int]:
        """The ends of everything on both clusters, offsets of groups and transactions included."""
        return log_ends(self.source, self.target)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        before = self.ends()
        yield
        assert self.ends() == before


@pytest.fixture
def both(lab: Lab) -> Iterator[Both]:
    """Its internal topics are removed in the end: flows of other tests look at all state topics of the clusters."""
    topic = lab.topic(lab.source)
    lines = (IDENTITY, "B->A.enabled = true", f"A->B.topics = {topic}", f"B->A.topics = {topic}", "sync.group.offsets.enabled = true")
    made = Both(lab.config(*lines, "emit.heartbeats.enabled = false"), topic, lab.source, lab.target)
    lab.produce(lab.source, topic, [(0, b"k", b"v")] * 3)
    commit_offsets(lab.source.client_settings(), f"group-of-{topic}", {(topic, 0): 2})
    report: RunReport = lab.run(made.flow)
    assert report.records == 3
    lab.produce(lab.source, topic, [(0, b"k", b"v")])
    try:
        yield made
    finally:
        alias = made.flow.source.alias
        delete_topics(lab.target.client_settings(), ledger_topic(alias), state_topic(alias), runs_topic(alias))


def newer(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """The record as the next format version might have it."""
    key, value = pair
    return key, json.dumps({**json.loads(value), "version": 2}).encode()


def refused(act: Callable[[], object], said: str) -> bool:
    try:
        act()
    except NewerFormat as problem:
        return re.search(said, str(problem)) is not None
    return False


def _read_for_upkeep(flow: Flow, topic: str) -> None:
    with topic_reader(flow.target) as reader:
        for share in reader.partitions(topic):
            upkeep._receipts(reader, share, topic, place_of(flow.target, topic))


def receipts(flow: Flow) -> list[tuple[int, bytes, bytes]]:
    with topic_reader(flow.target) as reader:
        return [(record.partition, record.key, record.value or b"") for record in reader.read(flow.ledger_topic)]


def of_everything(both: Both, directory: Path) -> dict[str, Callable[[], object]]:
    """Whatever reads state or ledger, and might write afterwards."""
    seeds = directory / "seeds.csv"
    seeds.write_text(f"topic,partition,position\n{both.topic},0,1\n", encoding="utf-8")
    flow, request = both.flow, both.request()
    return {
        "plan": lambda: plan_run(flow, request),
        "prepare": lambda: prepare_run(flow, request, spark_follows=True),
        "copy": lambda: copy_run(flow, request, InlineLaneRunner(), lambda _: None),
        "seed": lambda: seed(flow, request, read_seed_file(seeds)),
        "export": lambda: export_offsets(flow, request, write=True),
        "acknowledge": lambda: acknowledge_losses(flow),
        "status": lambda: flow_status(flow),
        "verify": lambda: verify(flow, VerifyRequest(flow.name, "of-the-older-release"), verify_inline, lambda _: None),
        "the other flow": lambda: plan_run(both.back, RunRequest(both.back.name, "back")),
    }


def test_a_newer_state(both: Both, tmp_path: Path) -> None:
    topic = both.flow.state_topic
    said = f"cluster {both.flow.target.alias}: topic {topic} holds format version 2, .* up to 1"
    with run_lease(both.flow) as hold:  # the newer release's run, which is under way
        hold.take_lanes()
        hold.write({(topic, 0): [newer(encode_state(FlowRecord(both.flow.name, 8)))]})
        with both.untouched():
            for name, act in of_everything(both, tmp_path).items():
                assert refused(act, said), name
            for sync in SyncName:
                outcome = carry_out(both.flow, sync, run_id="of-the-older-release", on_request=True)
                assert [failure.error for failure in outcome.failed] == ["NewerFormat"], sync
            ended = CliRunner().invoke(app, ["run", str(both.config), "--flow", both.flow.name, "--master", "inline"])
            assert isinstance(ended.exception, NewerFormat)
        hold.confirm()  # nobody has fenced it


def test_a_newer_receipt(both: Both, tmp_path: Path) -> None:
    topic = both.flow.ledger_topic
    said = f"cluster {both.flow.target.alias}: topic {topic} holds format version 2, .* up to 1"
    partition, key, value = next(entry for entry in receipts(both.flow) if b'"copied"' in entry[1])
    later = encode_receipt(Receipt(**{**vars(decode_receipt(key, value)), "upstream_start": 3}))
    both.append(topic, *newer(later), partition=partition)
    asked = of_everything(both, tmp_path)
    # These do not read the ledger: a run decides by the state, whose flow record a newer Ferry writes first.
    for name in ("plan", "prepare", "copy", "seed", "export"):
        del asked[name]
    asked["translate"] = lambda: translated_groups(both.flow)
    asked["upkeep"] = lambda: _read_for_upkeep(both.flow, topic)
    with both.untouched():
        for name, act in asked.items():
            assert refused(act, said), name
        for sync in (SyncName.CHECKPOINTS, SyncName.GROUPS):
            outcome = carry_out(both.flow, sync, on_request=True)
            assert [failure.error for failure in outcome.failed] == ["NewerFormat"], sync
    shown = CliRunner().invoke(app, ["format", str(both.config), "ledger", "--flow", both.flow.name, "--json"])
    assert shown.exit_code == 0
    assert [entry["record"] for entry in json.loads(shown.stdout)["records"]].count("unreadable") == 1


def test_a_newer_report(both: Both) -> None:
    topic = both.flow.runs_topic
    both.append(topic, b"theirs", b'{"version":2,"kind":"opened"}')
    with both.untouched(), pytest.raises(NewerFormat, match=f"{topic} holds format version 2"):
        assemble_report(both.flow, RunRequest(both.flow.name, "theirs"))
    assert assemble_report(both.flow, RunRequest(both.flow.name, "another")).failed[0].error == "RunUnfinished"


def test_compaction_of_the_ledger_leaves_records_with_more_fields_alone(both: Both) -> None:
    """Four old receipts follow each other: without the addition they become one."""
    topic = both.flow.ledger_topic
    partition, key, value = next(entry for entry in receipts(both.flow) if b'"copied"' in entry[1])
    known = vars(decode_receipt(key, value))
    old = time.time_ns() // 1_000_000 - 2 * DAY
    starts = range(1_000, 1_005)
    for start in starts:
        place = {"upstream_start": start, "upstream_end": start + 1, "downstream_end": start + 1, "runs": ((start, start, 1),)}
        name, what = encode_receipt(Receipt(**{**known, **place}))
        added = json.dumps({**json.loads(what), "new": 1}).encode() if start == 1_002 else what
        both.append(topic, name, added, partition=partition, at=old)
    done = compact_ledger(both.flow)
    assert [(one.upstream_start, one.upstream_end) for one in done.merged] == [(1_000, 1_002)]
    left = {json.loads(name)["start"]: what for _, name, what in receipts(both.flow) if what}
    assert json.loads(left[1_002])["new"] == 1
    assert {start for start in left if start in starts} >= {1_000, 1_002, 1_003, 1_004}


def test_a_damaged_record_is_named(both: Both) -> None:
    topic = both.flow.state_topic
    producer = Producer(both.target.client_settings())
    producer.produce(topic, b"no JSON", b'{"head":["x",0]}')
    assert producer.flush(20) == 0
    with both.untouched(), pytest.raises(Exception, match=f"topic {topic}: record .*head.* is not readable") as found:
        plan_run(both.flow, both.request())
    assert type(found.value).__name__ == "UnreadableRecord"
