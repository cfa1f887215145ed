"""Flows: MM2's rules for what is enabled, and every field."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ferry.config import FerryConfig, Flow
from ferry.config.flow import with_commands
from ferry.config.settings import MirroringSettings

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]


def flow(load: Load, text: str) -> Flow:
    return load(text).flow("A->B")


def test_a_text_names_commands_to_paste(load: Load) -> None:
    found = flow(load, "")
    told = with_commands("see ferry ledger, or ferry seed --foreign; ferry.on.recreate", found.name, "/etc/my ferry.properties")
    assert told == "see ferry ledger '/etc/my ferry.properties' --flow 'A->B', or ferry seed --foreign; ferry.on.recreate"
    assert found.command("ledger") == f"ferry ledger {found.source.path} --flow 'A->B'"


def test_defaults(load: Load) -> None:
    found = flow(load, "")
    assert found.topics == (".*",)
    assert found.topics_exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert found.replication_policy_class == "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
    assert (found.separator, found.internal_separator_enabled, found.replication_factor) == (".", True, 2)
    assert len(found.config_properties_exclude) == 8
    assert (found.use_defaults_from, found.tasks_max, found.exactly_once, found.start) == ("target", None, True, "earliest")
    assert (found.lanes, found.on_recreate, found.on_target_recreate, found.schedule) == (None, "fail", "fail", None)
    assert (found.spark_connection, found.transaction_bytes, found.transaction_seconds) == ("spark_default", 64 * 1024 * 1024, 10)
    assert (found.ledger_partitions, found.internal_topics_replication_factor) == (5, 3)
    assert found.mirroring == MirroringSettings()
    assert found.connect_offsets_topic is None


def test_every_field(load: Load) -> None:
    found = flow(
        load,
        """\
A->B.topics = orders.*, pay\\\\.ments
topics.exclude =
replication.policy.class = IdentityReplicationPolicy
replication.policy.separator = _
replication.policy.internal.topic.separator.enabled = false
replication.factor = -1
config.properties.exclude = a.*
A->B.use.defaults.from = source
tasks.max = 4
transaction.producer = FALSE
ferry.start = latest
ferry.lanes = 1000
ferry.on.recreate = restart
A->B.ferry.on.target.recreate = restart
ferry.schedule = */5  * * * 1-5
ferry.spark.connection = spark_big
ferry.transaction.mb = 1
ferry.transaction.seconds = 50
B.ferry.ledger.partitions = 7
B.ferry.internal.topics.replication.factor = -1
A->B.groups = g
A->B.sync.group.offsets.enabled = true
""",
    )
    assert found.topics == ("orders.*", r"pay\.ments")
    assert found.topics_exclude == ()
    assert found.replication_policy_class == "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    assert (found.separator, found.internal_separator_enabled, found.replication_factor) == ("_", False, -1)
    assert (found.config_properties_exclude, found.use_defaults_from, found.tasks_max) == (("a.*",), "source", 4)
    assert (found.exactly_once, found.start, found.lanes) == (False, "latest", 1000)
    assert (found.on_recreate, found.on_target_recreate, found.schedule) == ("restart", "restart", "*/5 * * * 1-5")
    assert (found.spark_connection, found.transaction_bytes, found.transaction_seconds) == ("spark_big", 1024 * 1024, 50)
    assert (found.ledger_partitions, found.internal_topics_replication_factor) == (7, -1)
    assert (found.mirroring.groups, found.mirroring.sync_group_offsets_enabled) == (("g",), True)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - made here
    assert isinstance(hash(found), int)


def test_internal_separator_counts_only_beside_a_separator(load: Load) -> None:
    assert flow(load, "replication.policy.internal.topic.separator.enabled = false\n").internal_separator_enabled


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("A.consumer.auto.offset.reset = latest", "latest"),
        ("A->B.consumer.auto.offset.reset = latest", "latest"),
        ("A.consumer.auto.offset.reset = earliest\nA->B.consumer.auto.offset.reset = latest", "earliest"),
        ("A.consumer.auto.offset.reset = earliest\nA->B.source.consumer.auto.offset.reset = latest", "latest"),
        ("B.consumer.auto.offset.reset = latest", "earliest"),
        ("A.consumer.auto.offset.reset = latest\nferry.start = earliest", "earliest"),
        ("ferry.start = latest\nA->B.ferry.start = 2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("ferry.start = 2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("ferry.start = 2026-01-31T12:00:00.5", datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("ferry.start = 2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_start(load: Load, text: str, start: object) -> None:
    assert flow(load, text + "\n").start == start


@pytest.mark.parametrize("value", ["none", "by_duration:P1D"])
def test_resets_that_ferry_does_not_take(problems: Callable[..., list[str]], value: str) -> None:
    (found,) = problems(f"A.consumer.auto.offset.reset = {value}\n")
    assert found.startswith("5: A.consumer.auto.offset.reset: must be earliest or latest")
    assert "ferry.start=<ISO time>" in found


@pytest.mark.parametrize("connector", ["", "connector.type = source\n", "connector.type = sink\n", "A->B.connector.type = sink\n"])
@pytest.mark.parametrize(
    ("producer", "exactly_once"), [("", True), ("transaction.producer = true", True), ("transaction.producer = false", False)]
)
def test_kip_656_in_every_combination(load: Load, connector: str, producer: str, exactly_once: bool) -> None:
    """The guarantee is never weaker than the KIP's: only its default, at-least-once, is exactly-once here."""
    found = flow(load, f"{connector}{producer}\n")
    assert (found.exactly_once, found.mirroring.publish_source_group) == (exactly_once, "")


def test_other_connector_types_are_refused(problems: Callable[..., list[str]]) -> None:
    assert problems("connector.type = both\n") == ["5: connector.type: must be source or sink, not 'both'"]


def test_the_group_on_the_source(load: Load, problems: Callable[..., list[str]]) -> None:
    assert flow(load, "ferry.publish.source.group = connect-mirror\n").mirroring.publish_source_group == "connect-mirror"
    (found,) = problems("ferry.publish.source.group = __ferry-A\n")
    assert "must be a consumer group that is not one of Ferry's own" in found


BASE = "clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.bootstrap.servers=c:1\n"


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("A->B.enabled=true", ["A->B"]),
        ("A->B.enabled=TRUE\nB->C.enabled=true\nC->A.enabled=false", ["A->B", "B->C"]),
        # A connector property at the top level holds for every pair that gets connectors: by default all, for their heartbeats.
        ("enabled=true", ["A->B", "A->C", "B->A", "B->C", "C->A", "C->B"]),
        ("enabled=true\nA->B.enabled=false", ["A->C", "B->A", "B->C", "C->A", "C->B"]),
        ("enabled=true\nemit.heartbeats.enabled=false\nA->B.enabled=true", ["A->B"]),
        ("enabled=true\nemit.heartbeats.enabled=false\nB->C.emit.heartbeats.enabled=true", ["B->C"]),
        # The trailing blank: false for Boolean.parseBoolean, true for the connector, which exists because of heartbeats.
        ("A->B.enabled=true ", ["A->B"]),
        ("A->B.enabled=true \nB->C.enabled=true\nemit.heartbeats.enabled=false", ["B->C"]),
        ("A->B.enabled=true \nB->C.enabled=true\nA->B.emit.heartbeats.enabled=false", ["B->C"]),
    ],
)
def test_enabled_by_mm2s_rules(load: Load, text: str, enabled: list[str]) -> None:
    assert [found.name for found in load(BASE + text + "\n", whole=True).flows] == enabled


@pytest.mark.parametrize(
    ("text", "reverse"),
    [
        ("A->B.enabled=true", "default"),
        ("A->B.enabled=true\nemit.heartbeats.enabled=true", "default"),
        ("A->B.enabled=true\nB->A.emit.heartbeats.enabled=true", "asked"),
        ("A->B.enabled=true\nemit.heartbeats.enabled=false\nB->A.emit.heartbeats.enabled=TRUE", "asked"),
        ("A->B.enabled=true\nA->B.emit.heartbeats.enabled=false", "default"),
        ("A->B.enabled=true\nemit.heartbeats.enabled=false", "off"),
        ("A->B.enabled=true\nB->A.emit.heartbeats.enabled=false", "off"),
        ("A->B.enabled=true\nB->A.emit.heartbeats.enabled=true ", "off"),  # not trimmed, as in MM2
        ("A->B.enabled=true\nB->A.enabled=true\nB->A.emit.heartbeats.enabled=true", "off"),  # that flow's own runs write them
        ("A->B.enabled=true\nA->C.emit.heartbeats.enabled=false", "default"),
    ],
)
def test_heartbeats_of_the_other_direction(load: Load, text: str, reverse: str) -> None:
    assert load(BASE + text + "\n", whole=True).flow("A->B").reverse_heartbeat == reverse


def test_transactional_ids_never_meet(load: Load) -> None:
    found = flow(load, "")
    ids = [found.transactional_id(lane) for lane in range(100)] + [found.transactional_id(own) for own in ("run", "upkeep")]
    assert len(set(ids)) == 102
    assert ids[3] == "ferry-A->B-3"
