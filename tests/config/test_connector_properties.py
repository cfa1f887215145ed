"""Connect-style files of single connectors: the same flow as from mm2.properties, problems told in the words of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.config import ClientRole, FerryConfig, Flow, load_config
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

MIRROR = "org.apache.kafka.connect.mirror."
BASE = (
    "name = us-east-source",
    f"connector.class = {MIRROR}MirrorSourceConnector",
    "source.cluster.alias = us-west",
    "target.cluster.alias = us-east",
    "source.cluster.bootstrap.servers = west:9092",
    "target.cluster.bootstrap.servers = east:9092",
)


def load(tmp_path: Path, *lines: str) -> FerryConfig:
    path = tmp_path / "connector.properties"
    path.write_text("\n".join(lines) + "\n")
    return load_config(path)


def flow_of(tmp_path: Path, *lines: str) -> Flow:
    (flow,) = load(tmp_path, *lines).flows
    return flow


def value(flow: Flow, side: str, role: ClientRole, name: str) -> str | None:
    found = getattr(flow, side).of_role(role).get(name)
    return None if found is None else found.value.reveal()


def test_a_source_connector_is_a_flow_that_only_copies(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, *BASE, "topics = orders,pay.*", "tasks.max = 4", "replication.policy.separator = _", "ferry.lanes = 3")
    assert (flow.name, flow.source.bootstrap, flow.target.bootstrap) == ("us-west->us-east", "west:9092", "east:9092")
    assert (flow.topics, flow.tasks_max, flow.separator, flow.lanes, flow.copies) == (("orders", "pay.*"), 4, "_", 3, True)
    around = flow.mirroring
    assert (around.sync_topic_configs_enabled, around.sync_topic_acls_enabled, around.emit_offset_syncs_enabled) == (True, True, True)
    assert (around.emit_heartbeats_enabled, around.emit_checkpoints_enabled, around.sync_group_offsets_enabled) == (False, False, False)
    assert flow.reverse_heartbeat == "off"


def test_checkpoint_and_heartbeat_connectors_copy_nothing(tmp_path: Path) -> None:
    lines = [line for line in BASE if not line.startswith("connector.class")]
    flow = flow_of(tmp_path, *lines, "connector.class = MirrorCheckpointConnector", "sync.group.offsets.enabled = true", "groups = g.*")
    around = flow.mirroring
    assert (flow.copies, around.groups, around.emit_checkpoints_enabled, around.sync_group_offsets_enabled) == (False, ("g.*",), True, True)
    assert (around.emit_heartbeats_enabled, around.sync_topic_configs_enabled, around.emit_offset_syncs_enabled) == (False, False, False)
    flow = flow_of(tmp_path, *lines, f"connector.class = {MIRROR}MirrorHeartbeatConnector", "emit.heartbeats.interval.seconds = 5")
    around = flow.mirroring
    assert (flow.copies, around.emit_heartbeats_enabled, around.emit_heartbeats_interval) == (False, True, 5)
    assert (around.emit_checkpoints_enabled, around.sync_topic_acls_enabled) == (False, False)


def test_without_a_class_it_is_a_whole_flow(tmp_path: Path) -> None:
    flow = flow_of(tmp_path, *BASE[2:])
    assert (flow.copies, flow.mirroring.emit_heartbeats_enabled, flow.mirroring.emit_checkpoints_enabled) == (True, True, True)
    assert flow.topics == (".*",)


def test_it_can_be_disabled_as_in_connect(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No source->target replication flows"):
        load(tmp_path, *BASE, "enabled = false")


def test_client_settings_by_mirror_connector_config_s_order(tmp_path: Path) -> None:
    lines = (
        "source.cluster.security.protocol = PLAINTEXT",
        "consumer.security.protocol = SSL",
        "admin.request.timeout.ms = 1111",
        "source.admin.request.timeout.ms = 2222",
        "source.consumer.fetch.max.bytes = 77",
        "target.producer.linger.ms = 5",
        "producer.override.compression.type = zstd",
        "consumer.auto.offset.reset = latest",
    )
    flow = flow_of(tmp_path, *BASE, *lines)
    assert value(flow, "source", ClientRole.CONSUMER, "security.protocol") == "SSL"
    assert value(flow, "source", ClientRole.ADMIN, "security.protocol") == "PLAINTEXT"
    assert value(flow, "source", ClientRole.ADMIN, "request.timeout.ms") == "2222"
    assert value(flow, "target", ClientRole.ADMIN, "request.timeout.ms") == "1111"
    assert value(flow, "source", ClientRole.CONSUMER, "fetch.max.bytes") == "77"
    assert value(flow, "target", ClientRole.PRODUCER, "linger.ms") == "5"
    assert value(flow, "target", ClientRole.PRODUCER, "compression.type") == "zstd"
    assert flow.start == "latest"


def test_rename_topics_is_the_identity_policy(tmp_path: Path) -> None:
    assert flow_of(tmp_path, *BASE, "rename.topics = false").replication_policy_class == f"{MIRROR}IdentityReplicationPolicy"
    assert flow_of(tmp_path, *BASE, "rename.topics = true").replication_policy_class == f"{MIRROR}DefaultReplicationPolicy"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("tasks.max = none", "7: tasks.max: must be"),
        (
            "source.cluster.bootstrap.server = x:1",
            "7: source.cluster.bootstrap.server: is not a known property; did you mean source.cluster.",
        ),
        ("source.consumer.auto.offset.rest = latest", "did you mean source.consumer.auto.offset.reset?"),
        ("topic = x", "7: topic: is not a known property; did you mean topics?"),
        ("transforms = cast", "7: transforms: single message transforms"),
        ("source.cluster.sasl.jaas.config = nonsense", "7: source.cluster.sasl.jaas.config: "),
        ("ferry.message.handler = nowhere", "7: ferry.message.handler: "),
    ],
)
def test_problems_name_key_and_line_of_the_file(tmp_path: Path, line: str, problem: str) -> None:
    extra = ["source.cluster.security.protocol = SASL_PLAINTEXT", "source.cluster.sasl.mechanism = PLAIN"] if "jaas" in line else []
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, *BASE, line, *extra)
    assert problem in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}/connector.properties:7: ")
    assert "us-west->us-east." not in str(raised.value)


@pytest.mark.parametrize(
    ("left_out", "added", "problem"),
    [
        ("source.cluster.alias", "", "source.cluster.alias: is missing"),
        ("target.cluster.alias", "target.cluster.alias = us-west", "target.cluster.alias: is the same as source.cluster.alias"),
        ("connector.class", "connector.class = com.acme.Other", "connector.class: must be MirrorSourceConnector"),
        ("source.cluster.bootstrap", "", "source.cluster.bootstrap.servers: is missing"),
    ],
)
def test_required_keys_of_a_connector_file(tmp_path: Path, left_out: str, added: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load(tmp_path, *[line for line in BASE if not line.startswith(left_out)], added)


def test_clusters_says_nothing_to_a_connector(tmp_path: Path) -> None:
    """Connect's worker takes any key; the file is still that of a connector."""
    for left_out in ("connector.class", "nothing"):
        lines = [line for line in BASE if not line.startswith(left_out)]
        config = load(tmp_path, "clusters = A, B", *lines, "topics = orders")
        (flow,) = config.flows
        assert (flow.name, flow.source.bootstrap, flow.topics) == ("us-west->us-east", "west:9092", ("orders",))
        assert any(":1: clusters: has no effect in the file of a connector" in text for text in config.warnings)


def test_keys_of_another_connector_and_repeated_keys_give_warnings(tmp_path: Path) -> None:
    warnings = load(tmp_path, *BASE, "emit.checkpoints.enabled = true", "topics = a", "topics = b").warnings
    assert any(":7: emit.checkpoints.enabled: has no effect in the file of a" in text for text in warnings)
    assert any(":8: topics: is given again in line 9" in text for text in warnings)


def test_the_form_of_kip_382_is_weaker_than_mm2_s_own(tmp_path: Path) -> None:
    config = load(tmp_path, *BASE, "source.bootstrap.servers = other:1")
    assert config.flows[0].source.bootstrap == "west:9092"
    assert any(
        ":7: source.bootstrap.servers: has no effect: source.cluster.bootstrap.servers is set too" in text for text in config.warnings
    )
    without = [line for line in BASE if not line.startswith("source.cluster.boot")]
    assert flow_of(tmp_path, *without, "source.bootstrap.servers = other:1").source.bootstrap == "other:1"


def test_only_logins_stand_behind_the_cluster_s_prefix(tmp_path: Path) -> None:
    config = load(tmp_path, *BASE, "source.cluster.consumer.auto.offset.reset = latest")
    assert config.flows[0].start == "earliest"
    assert any("source.cluster.consumer.auto.offset.reset: has no effect" in text for text in config.warnings)
