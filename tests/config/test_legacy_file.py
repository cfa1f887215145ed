"""MirrorMaker 1's options and client files as one flow; problems name the file that they stand in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.config import ClientRole, FerryConfig, load_config
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

CONSUMER = "bootstrap.servers=west:9092\ngroup.id=mirror\nauto.offset.reset=latest\nfetch.max.bytes=77\nexclude.internal.topics=true\n"
PRODUCER = "# to the east\nbootstrap.servers=east:9092\nacks=all\ncompression.type=lz4\n"

Load = Callable[..., FerryConfig]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def write(*lines: str, consumer: str = CONSUMER, producer: str = PRODUCER) -> FerryConfig:
        (tmp_path / "consumer.properties").write_text(consumer)
        (tmp_path / "producer.properties").write_text(producer)
        path = tmp_path / "legacy.properties"
        start = ["legacy.consumer.config = consumer.properties", f"legacy.producer.config = {tmp_path}/producer.properties"]
        path.write_text("\n".join([*start, *lines]) + "\n")
        return load_config(path)

    return write


def test_one_flow_that_copies_records_under_their_names(load: Load) -> None:
    (flow,) = load("legacy.include = orders|pay.*, t1", "legacy.num.streams = 3", "legacy.offset.commit.interval.ms = 5000").flows
    assert (flow.name, flow.source.bootstrap, flow.target.bootstrap) == ("source->target", "west:9092", "east:9092")
    assert flow.replication_policy_class.endswith(".IdentityReplicationPolicy")
    assert (flow.topics, flow.tasks_max, flow.transaction_seconds, flow.start) == (("orders|pay.*", "t1"), 3, 5, "latest")
    assert (flow.replication_factor, flow.reverse_heartbeat) == (-1, "off")
    around = flow.mirroring
    synced = (around.sync_topic_configs_enabled, around.sync_topic_acls_enabled, around.sync_group_offsets_enabled)
    emitted = (around.emit_heartbeats_enabled, around.emit_checkpoints_enabled, around.emit_offset_syncs_enabled)
    assert not any(synced + emitted)
    fetched = flow.source.of_role(ClientRole.CONSUMER)["fetch.max.bytes"]
    assert fetched.value.reveal() == "77"
    assert flow.target.of_role(ClientRole.PRODUCER)["compression.type"].value.reveal() == "lz4"
    assert fetched.path == flow.source.path.parent / "consumer.properties"
    assert pickle.loads(pickle.dumps(fetched)) == fetched  # noqa: S301 - our own bytes


def test_blacklist_aliases_and_other_properties_of_a_flow(load: Load) -> None:
    (flow,) = load(
        "legacy.blacklist = secret.*",
        "legacy.abort.on.send.failure = false",
        "legacy.source.alias = west",
        "legacy.target.alias = east",
        "ferry.lanes = 2",
    ).flows
    assert (flow.name, flow.topics, flow.topics_exclude[0], flow.lanes) == ("west->east", (".*",), "secret.*", 2)
    assert "__consumer_offsets" in flow.topics_exclude
    assert not flow.handling.abort_on_send_failure


def test_an_option_that_is_read_otherwise_gives_a_warning(load: Load, tmp_path: Path) -> None:
    loaded = load("legacy.whitelist = x", "legacy.offset.commit.interval.ms = 90000", consumer=f"{CONSUMER}num.consumer.fetchers=3\n")
    assert loaded.flows[0].transaction_seconds == 50
    assert any("legacy.properties:4: legacy.offset.commit.interval.ms: becomes 50 s" in text for text in loaded.warnings)
    assert (
        f"{tmp_path}/consumer.properties:6: num.consumer.fetchers: has no effect: it is not a property of Kafka's consumer"
        in loaded.warnings
    )
    assert f"{tmp_path}/producer.properties:3: acks: has no effect in Ferry" in "\n".join(loaded.warnings)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"consumer": "bootstrap.servers=west:9092\nsecurity.protocl=SSL\n"}, "consumer.properties:2: security.protocl: is not a property"),
        ({"producer": "\n\nbootstrap.servers=east\n"}, "producer.properties:3: bootstrap.servers: must be"),
        ({"producer": "acks=all\n"}, "producer.properties: bootstrap.servers: is missing"),
        ({"consumer": "zookeeper.connect=zk:2181\n"}, "consumer.properties:1: zookeeper.connect: "),
        ({"producer": "bootstrap.servers=west:9092\n"}, "producer.properties:1: bootstrap.servers: has a server of cluster source"),
        (
            {"producer": "bootstrap.servers=east:9092\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=x\n"},
            "producer.properties:4: sasl.jaas.config: ",
        ),
    ],
)
def test_problems_of_client_files_name_them(load: Load, tmp_path: Path, changes: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load("legacy.include = x", **changes)
    assert str(raised.value).startswith(f"{tmp_path}/{problem}")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ((), "legacy.include: is missing"),
        (("legacy.include = a", "legacy.whitelist = b"), "legacy.properties:4: legacy.whitelist: "),
        (("legacy.include = [",), "legacy.properties:3: legacy.include: "),
        (("legacy.include = a", "legacy.num.streams = many"), "legacy.properties:4: legacy.num.streams: must be"),
        (("legacy.include = a", "legacy.offset.commit.interval.ms = 0"), "legacy.properties:4: legacy.offset.commit.interval.ms: must be"),
        (("legacy.include = a", "legacy.topics.regex = x"), "legacy.properties:4: legacy.topics.regex: is not a known property"),
        (
            ("legacy.include = a", "legacy.message.handler = com.acme.Handler"),
            "4: legacy.message.handler: com.acme.Handler must be written",
        ),
    ],
)
def test_problems_of_the_options(load: Load, lines: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(*lines)
    assert problem in str(raised.value)


def test_client_files_that_are_not_there(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "other.properties"
    path.write_text("legacy.consumer.config = nowhere.properties\nlegacy.include = x\n")
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert "other.properties:1: legacy.consumer.config: " in str(raised.value)
    assert "nowhere.properties: cannot be read" in str(raised.value)
    assert "other.properties: legacy.producer.config: is missing" in str(raised.value)
