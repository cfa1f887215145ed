"""Files of other tools become one mm2.properties that the loader takes, and every entry is accounted for."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest

from ferry.config import FerryConfig, load_config
from ferry.errors import ConfigError
from ferry.imports.importing import Fate, Imported, import_files
from ferry.imports.rendering import rendered

pytestmark = pytest.mark.unit

PUBLISHED = Path(__file__).parent / "published"
SECRETS = PurePosixPath("/secrets")


def imported(*names: str) -> Imported:
    return import_files([PUBLISHED / name for name in names], SECRETS)


def loaded(found: Imported, tmp_path: Path) -> FerryConfig:
    """The new file, read as every config; flows that are off are switched on first."""
    path = tmp_path / "mm2.properties"
    text = rendered(found, [Path("x.json")])
    for flow in found.off:
        text = text.replace(f"{flow}.enabled = false", f"{flow}.enabled = true")
    path.write_text(text, encoding="ascii")
    return load_config(path)


def not_kept(found: Imported) -> list[str]:
    return [row.key for row in found.rows if row.fate is Fate.NOT_KEPT]


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.properties")), ids=lambda path: path.stem)
def test_a_published_config_is_accepted_or_refused_for_its_reason(path: Path) -> None:
    verdict = next(line for line in path.read_text().splitlines() if line.startswith("# verdict: ")).removeprefix("# verdict: ")
    if verdict == "accepted":
        assert load_config(path).flows
    else:
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert verdict.removeprefix("refused: ") in str(caught.value)


@pytest.mark.parametrize(
    ("names", "flows", "lost"),
    [
        (["strimzi-two-mirrors.yaml"], ["event-streams->on-premise", "on-premise->event-streams"], ["trustedCertificates"]),
        (["strimzi-fan-in.yaml"], ["northamerica->europe", "southamerica->europe"], []),
        (["strimzi-mutual-tls.yaml"], ["broker-1->broker-2"], []),
        (["strimzi-oauth.yaml"], ["platform->cluster-b"], []),
        (["strimzi-v1.yaml"], ["my-source->my-target"], []),
        (["strimzi-typing-errors.yaml"], ["ohio->virginia"], ["sync.group.offests.enabled"]),
        (["strimzi-connector.yaml"], ["a->b"], []),
        (["connect-post.json"], ["msksource->mskdest"], []),
        (["connect-put-numbers.json"], ["origin->destination"], []),
        (["connect-no-target-alias.json"], ["east->target"], []),
        (["connect-heartbeat.json", "connect-post.json", "connect-checkpoint.json"], ["msksource->mskdest"], []),
        (["connect-expanded.json"], ["a->b"], ["transforms", "transforms.rename.type"]),
        (["mm1-script.sh"], ["source->target"], []),
        (["mm1-class.sh"], ["source->target"], []),
        (["mm1-rename.sh"], ["source->target"], ["--message.handler"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_the_new_file_loads_and_says_what_is_lost(names: list[str], flows: list[str], lost: list[str], tmp_path: Path) -> None:
    found = imported(*names)
    config = loaded(found, tmp_path)
    assert sorted(flow.name for flow in config.flows) == flows
    assert not_kept(found) == lost
    assert (found.off == frozenset(flows)) == bool(lost)
    assert {row.path for row in found.rows} >= {str(PUBLISHED / name) for name in names}
    assert [warning for warning in config.warnings if "has no effect" in warning] == []


def test_three_connectors_are_one_flow(tmp_path: Path) -> None:
    found = imported("connect-post.json", "connect-checkpoint.json", "connect-heartbeat.json")
    flow = loaded(found, tmp_path).flow("msksource->mskdest")
    around = flow.mirroring
    assert (flow.topics, flow.topics_exclude, flow.tasks_max) == (("orders.*",), ("secret.*",), 4)
    assert (around.groups, around.sync_group_offsets_enabled, around.emit_checkpoints_enabled) == (("billing.*",), True, True)
    assert (around.emit_heartbeats_enabled, around.emit_heartbeats_interval, flow.reverse_heartbeat) == (True, 5, "off")
    assert flow.replication_policy_class.endswith(".IdentityReplicationPolicy")
    (tasks,) = [row for row in found.rows if row.key == "tasks.max" and row.fate is Fate.NO_EFFECT]
    assert tasks.path.endswith("connect-checkpoint.json")


def test_without_its_connector_a_part_of_the_flow_is_off(tmp_path: Path) -> None:
    flow = loaded(imported("connect-put-numbers.json"), tmp_path).flow("origin->destination")
    around = flow.mirroring
    assert (around.emit_checkpoints_enabled, around.sync_group_offsets_enabled, around.emit_heartbeats_enabled) == (False, False, False)
    flow = loaded(imported("strimzi-v1.yaml"), tmp_path).flow("my-source->my-target")
    assert not flow.mirroring.emit_checkpoints_enabled, "its connector is stopped"
    both = loaded(imported("strimzi-two-mirrors.yaml"), tmp_path)
    assert all(flow.mirroring.emit_heartbeats_enabled for flow in both.flows)


def test_secrets_stay_references() -> None:
    found = imported("strimzi-mutual-tls.yaml")
    values = {key: entry.value for key, entry in found.entries.items()}
    assert values["broker-1.ssl.keystore.key"] == "${directory:/secrets/admin-user-1:user.key}"
    assert values["broker-2.ssl.truststore.certificates"] == "${directory:/secrets/broker-2-cluster-ca-cert:ca.crt}"
    assert values["config.providers.directory.class"].endswith("DirectoryConfigProvider")
    login = imported("strimzi-connector.yaml").entries["a.sasl.jaas.config"].value
    assert 'password="${directory:/secrets/source-login:password}"' in login


def test_a_connector_that_contradicts_the_others_is_named_and_nothing_is_copied_before_somebody_decides(tmp_path: Path) -> None:
    source = json.loads((PUBLISHED / "connect-post.json").read_text())
    checkpoint = json.loads((PUBLISHED / "connect-checkpoint.json").read_text())
    checkpoint["config"]["replication.policy.class"] = "DefaultReplicationPolicy"
    path = tmp_path / "both.json"
    path.write_text(json.dumps([source, checkpoint]))
    found = import_files([path], SECRETS)
    assert not_kept(found) == ["replication.policy.class"]
    assert found.off == {"msksource->mskdest"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.json", '{"a": 1,\n"b" 2}', "x.json:2: is no JSON document: "),
        ("x.json", "[]", "no file holds a flow"),
        ("x.json", '{"tasks": {"a": "b"}}', "x.json:1: holds no connector"),
        ("x.json", '{"name": "n", "config": {"topics": ["a"]}}', "x.json:1: topics: must be a text"),
        ("x.yaml", "kind: Kafka\nspec: {}\n", "holds no resource of the kinds KafkaMirrorMaker2 and KafkaConnector"),
        ("x.yaml", "kind: KafkaMirrorMaker2\nspec: [\n", "x.yaml:3: is no YAML document: "),
        (
            "x.yaml",
            "kind: KafkaMirrorMaker2\nspec:\n  mirrors:\n  - sourceCluster: a\n    targetCluster: b\n",
            "x.yaml:4: a: is no cluster of",
        ),
        ("x.sh", "kafka-mirror-maker.sh --consumer.config\n", "x.sh:1: --consumer.config: has no value"),
        ("x.sh", "kafka-mirror-maker.sh --whitelist 'a\n", "x.sh:1: the command cannot be read: No closing quotation"),
        ("x.sh", "\nkafka-mirror-maker.sh consumer.config\n", "x.sh:2: consumer.config: is no option of MirrorMaker 1"),
        ("x.properties", "a = b\n", "is no config of MirrorMaker"),
        ("x.properties", "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\n", "B.bootstrap.servers: is missing"),
        ("x.properties", "connector.class = MirrorCheckpointConnector\nsource.cluster.alias = A\n", "MirrorSourceConnector is missing"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        import_files([path], SECRETS)
    assert told in str(caught.value)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="each is a config of its own"):
        imported("connect-post.json", "mm1-class.sh")
    with pytest.raises(ConfigError, match="is a second MirrorSourceConnector of msksource->mskdest"):
        imported("connect-post.json", "connect-post.json")


def test_the_worker_s_file_gives_its_config_providers(tmp_path: Path) -> None:
    worker, source = tmp_path / "worker.properties", tmp_path / "source.properties"
    worker.write_text(
        "bootstrap.servers = w:9092\ngroup.id = connect\nplugin.path = /opt\nconfig.providers = vault\n"
        "config.providers.vault.class = org.apache.kafka.common.config.provider.FileConfigProvider\n"
    )
    source.write_text(
        "connector.class = MirrorSourceConnector\nsource.cluster.alias = A\ntarget.cluster.alias = B\n"
        "source.cluster.bootstrap.servers = a:1\ntarget.cluster.bootstrap.servers = b:1\n"
        "source.cluster.ssl.truststore.password = ${vault:/opt/secrets:key}\n"
    )
    found = import_files([worker, source], SECRETS)
    assert found.entries["A.ssl.truststore.password"].value == "${vault:/opt/secrets:key}"
    assert found.entries["config.providers"].value == "vault"
    assert {row.key for row in found.rows if row.fate is Fate.NO_EFFECT} >= {"plugin.path", "group.id"}
    assert loaded(found, tmp_path).flow("A->B")


def test_the_first_sample_of_kip_382_runs_both_flows(tmp_path: Path) -> None:
    path = tmp_path / "mirror-maker.properties"
    path.write_text(
        "clusters = primary, backup\ncluster.primary.broker.list = localhost:9091\ncluster.backup.broker.list = localhost:9092\n"
    )
    found = import_files([path], SECRETS)
    assert found.entries["primary.bootstrap.servers"].value == "localhost:9091"
    assert [flow.name for flow in loaded(found, tmp_path).flows] == ["primary->backup", "backup->primary"]
