"""What a remote topic's config would do to copied records, found before the first write."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Lab
from tests.opened import plan_run, read_cluster_facts, read_flow_facts
from tools.kafka import SandboxCluster, read_all

from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue
from ferry.config import Flow, load_config
from ferry.copying.request import RunRequest
from ferry.syncs.config_differences import COMPARED, NO_LIMIT, by_kind, config_differences, told, tombstones_kept, tombstones_lost

DAY = 86_400_000
USUAL = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": str(NO_LIMIT),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": str(7 * DAY),
}
OLDER = {name: value for name, value in USUAL.items() if ".after." not in name and ".before." not in name}
OLDER["message.timestamp.difference.max.ms"] = str(NO_LIMIT)


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return load(tmp_path)


def load(directory: Path, *lines: str) -> Flow:
    path = directory / "mm2.properties"
    servers = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true", "A->B.topics = t"]
    path.write_text("\n".join([*servers, *lines]) + "\n")
    return load_config(path).flows[0]


def entries(values: dict[str, str], origin: ConfigOrigin = ConfigOrigin.DEFAULT) -> dict[str, ConfigValue]:
    return {name: ConfigValue(value, origin) for name, value in values.items()}


@pytest.mark.unit
@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        ({}, {}, []),
        ({}, {"message.timestamp.type": "LogAppendTime"}, ["message.timestamp.type: would replace the timestamps"]),
        ({"message.timestamp.type": "LogAppendTime"}, {}, []),  # the copy keeps the source's times as the times of creation
        ({}, {"max.message.bytes": "1000"}, ["max.message.bytes: refuses a record that is larger"]),
        ({"max.message.bytes": "1000"}, {}, []),
        ({}, {"message.timestamp.before.max.ms": str(DAY)}, ["message.timestamp.before.max.ms: refuses records that are older than 24 h"]),
        ({"retention.ms": str(DAY)}, {"retention.ms": "-1", "message.timestamp.before.max.ms": str(DAY)}, []),
        (
            {"cleanup.policy": "compact"},
            {"cleanup.policy": "compact", "message.timestamp.before.max.ms": str(30 * DAY)},
            ["message.timestamp.before.max.ms: refuses records that are older than 30 days"],
        ),
        (
            {},
            {"message.timestamp.after.max.ms": "60000"},
            ["message.timestamp.after.max.ms: refuses records whose timestamp is more than 60 s"],
        ),
        ({"message.timestamp.after.max.ms": "60000"}, {}, []),
        ({}, {"cleanup.policy": "compact"}, ["cleanup.policy: keeps only the newest record of each key"]),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact"}, []),
        ({"cleanup.policy": "compact"}, {}, ["cleanup.policy: deletes old records (by retention.ms=604800000)"]),
        ({"cleanup.policy": "compact"}, {"retention.ms": "-1"}, []),
        ({"cleanup.policy": ""}, {}, ["cleanup.policy: deletes old records"]),  # neither, since Kafka 4.1
        (
            {},
            {"cleanup.policy": "compact,delete", "retention.ms": "1000"},
            ["cleanup.policy: keeps only the newest", "retention.ms: keeps records only for 1 s"],
        ),
        ({"retention.ms": "-1"}, {}, ["retention.ms: keeps records only for 7 days"]),
        ({}, {"retention.ms": "-1"}, []),
        ({"retention.ms": str(8 * DAY)}, {}, ["retention.ms: keeps records only for 7 days"]),
        ({}, {"retention.bytes": "5000"}, ["retention.bytes: keeps only 5,000 bytes of a partition"]),
        ({"retention.bytes": "4000"}, {"retention.bytes": "5000"}, []),
    ],
)
def test_what_the_target_would_do(flow: Flow, here: dict[str, str], there: dict[str, str], found: list[str]) -> None:
    differences = config_differences(flow, "t", "A.t", entries(USUAL | here), entries(USUAL | there))
    assert [f"{entry.name}: {entry.effect}"[: len(start)] for entry, start in zip(differences, found, strict=True)] == found
    assert [entry.refused for entry in differences] == [entry.name == "message.timestamp.type" for entry in differences]


@pytest.mark.unit
def test_releases_before_3_6_have_one_limit_of_timestamps(flow: Flow) -> None:
    future = "message.timestamp.after.max.ms: refuses records whose timestamp is more than 60 min in the future"
    assert both(flow, OLDER, USUAL) == [future], "until Kafka 4.0 there was no limit by default"
    assert both(flow, USUAL, OLDER) == []
    narrow = OLDER | {"message.timestamp.difference.max.ms": "60000"}
    name = "message.timestamp.difference.max.ms: refuses records"
    assert both(flow, OLDER, narrow) == [
        f"{name} that are older than 60 s",
        f"{name} whose timestamp is more than 60 s in the future",
    ]


def both(flow: Flow, here: dict[str, str], there: dict[str, str]) -> list[str]:
    found = config_differences(flow, "t", "A.t", entries(here), entries(there))
    return [f"{entry.name}: {entry.effect.removesuffix(', and the source may have some')}" for entry in found]


CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(["delete", "compact", "compact,delete", ""])
        if name == "cleanup.policy"
        else st.sampled_from(["CreateTime", "LogAppendTime"])
        if name == "message.timestamp.type"
        else st.sampled_from(["-1", "0", "1000", "604800000", str(NO_LIMIT)])
        for name in COMPARED
    },
)


@pytest.mark.unit
@given(here=CONFIGS, there=CONFIGS)
def test_equal_configs_never_differ_and_only_timestamps_are_refused(
    here: dict[str, str], there: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    flow = load(tmp_path_factory.getbasetemp())
    stamps = here.get("message.timestamp.type") == "LogAppendTime"
    narrow = any(".before." in name or ".difference." in name for name in here)  # may refuse what the source has taken when it was new
    if not narrow:
        assert both(flow, here, here) == (["message.timestamp.type: would replace the timestamps of records"] if stamps else [])
    found = config_differences(flow, "t", "A.t", entries(here), entries(there))
    assert {entry.name for entry in found} <= there.keys()
    assert any(entry.refused for entry in found) == (there.get("message.timestamp.type") == "LogAppendTime")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("lines", "here", "there", "remedy"),
    [
        ((), ConfigOrigin.TOPIC, ConfigOrigin.DEFAULT, "ferry sync "),
        ((), ConfigOrigin.DEFAULT, ConfigOrigin.TOPIC, "ferry sync "),
        ((), ConfigOrigin.DEFAULT, ConfigOrigin.BROKER_FILE, "set the value on the source topic itself"),
        ((), ConfigOrigin.BROKER_FILE, ConfigOrigin.TOPIC, "set the value on the source topic itself"),
        (("A->B.use.defaults.from = source",), ConfigOrigin.DEFAULT, ConfigOrigin.BROKER_FILE, "ferry sync "),
        (("A->B.config.properties.exclude = retention.*",), ConfigOrigin.TOPIC, ConfigOrigin.TOPIC, "change it there"),
        (("A->B.sync.topic.configs.enabled = false",), ConfigOrigin.TOPIC, ConfigOrigin.TOPIC, "change it there"),
    ],
)
def test_the_remedy_is_one_that_the_config_sync_does_not_undo(
    tmp_path: Path, lines: tuple[str, ...], here: ConfigOrigin, there: ConfigOrigin, remedy: str
) -> None:
    source = entries(USUAL | {"retention.ms": "-1"}, here)
    (found,) = config_differences(load(tmp_path, *lines), "t", "A.t", source, entries(USUAL, there))
    assert found.remedy.startswith(remedy)


@pytest.mark.unit
def test_topics_that_differ_alike_are_told_in_one_line_and_refused_ones_first(flow: Flow) -> None:
    short = [
        found
        for number in range(7)
        for found in config_differences(flow, f"t{number}", f"A.t{number}", entries(USUAL | {"retention.ms": "-1"}), entries(USUAL))
    ]
    (line,) = told(short)
    assert line.startswith(
        "retention.ms=604800000 of A.t0, A.t1, A.t2, A.t3, A.t4 and 2 more, -1 at the source: the target keeps records only for 7 days; set"
    )
    stamped = config_differences(flow, "s", "A.s", entries(USUAL), entries(USUAL | {"message.timestamp.type": "LogAppendTime"}))
    assert [kind.refused for _, kind in by_kind([*short, *stamped])] == [True, False]
    (line,) = told(config_differences(flow, "t", "A.t", entries(USUAL | {"cleanup.policy": ""}), entries(USUAL)))
    assert line.startswith("cleanup.policy=delete of A.t, (empty) at the source: the target deletes old records")


@pytest.mark.unit
def test_tombstones_that_a_pause_outlives(flow: Flow) -> None:
    compacted = USUAL | {"cleanup.policy": "compact,delete", "delete.retention.ms": "60000"}
    other = entries(compacted | {"cleanup.policy": "delete"})
    kept = tombstones_kept(flow, {"t": entries(compacted), "d": other, "hidden": {}, "heartbeats": entries(compacted)})
    assert kept == {"t": 60.0}
    assert tombstones_lost(kept, {"t": 59.9}) == ""
    assert tombstones_lost(kept, {"t": 3_600}).startswith(
        "t: the source drops tombstones after 60 s (delete.retention.ms), and 60 min are between two runs: keys that were deleted "
        "meanwhile may stay on the target; raise delete.retention.ms"
    )


@pytest.mark.long
@pytest.mark.brokers
def test_differences_are_named_before_the_first_write(
    cluster_factory: Callable[..., SandboxCluster], lab: Lab, source_producer: Producer
) -> None:
    """The target's brokers stamp records, and keep them for an hour; those of the source keep them for ever."""
    target = cluster_factory({"log.message.timestamp.type": "LogAppendTime", "log.retention.ms": "3600000"})
    topic = lab.topic(lab.source)
    written = time.time_ns() // 1_000_000 - 60_000
    source_producer.produce(topic, b"1", b"k", partition=0, timestamp=written)
    assert source_producer.flush(30) == 0
    flow = lab.flow(f"A->B.topics = {topic}", target=target)
    remote, request = f"{flow.source.alias}.{topic}", RunRequest(flow.name, "plan")
    short = (
        f"retention.ms=3600000 of {remote}, -1 at the source: the target keeps records only for 60 min; set the value on the source topic"
    )
    planned = plan_run(flow, request)
    assert [line.startswith(short) for line in planned.notices] == [True]
    assert [difference["name"] for difference in planned.document()["differences"]] == ["retention.ms"]
    assert target_topics(target) == set()
    assert lab.run(flow).notices == planned.notices
    (partition,) = read_all(target.client_settings(), remote)
    assert [record.timestamp for record in partition] == [written]
    assert plan_run(flow, request).differences == (), "nothing to copy, nothing to compare"
    source_producer.produce(topic, b"2", b"k", partition=0)
    assert source_producer.flush(30) == 0
    alter(target, remote, {"cleanup.policy": "compact", "retention.ms": "-1", "max.message.bytes": "2000"})
    planned = plan_run(flow, request)
    assert [(found.name, found.here, found.there) for found in planned.differences] == [
        ("max.message.bytes", "1048588", "2000"),
        ("cleanup.policy", "delete", "compact"),
    ]
    assert planned.failed == ()
    alter(target, remote, {"message.timestamp.type": "LogAppendTime"})
    planned = plan_run(flow, request)
    assert [(failure.error, failure.topic) for failure in planned.failed] == [("BatchRefused", topic)]
    assert not [line for line in planned.notices if "timestamps" in line], "a failure says it"
    facts = read_flow_facts(flow, read_cluster_facts(flow.source), read_cluster_facts(flow.target))
    assert facts.differences == planned.differences


def target_topics(cluster: SandboxCluster) -> set[str]:
    """Without those that a broker makes when it is asked for a group."""
    return {name for name in AdminClient(cluster.client_settings()).list_topics(timeout=30).topics if not name.startswith("__")}


def alter(cluster: SandboxCluster, topic: str, values: dict[str, str]) -> None:
    changes = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changes)
    admin = AdminClient(cluster.client_settings())
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
