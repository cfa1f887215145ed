"""Files of other tools become one mm2.properties that the loader takes, and every entry is accounted for."""

from __future__ import annotations

import json
from collections.abc import Callable
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
        ("x.yaml", "kind: Kafka\n---\nkind: Secret\n", "holds no resource of the kinds KafkaMirrorMaker2 and KafkaConnector"),
        ("x.yaml", "kind: KafkaMirrorMaker2\nspec: [\n", "x.yaml:3: is no YAML document: "),
        (
            "x.yaml",
            "kind: KafkaMirrorMaker2\nspec:\n  mirrors:\n  - sourceCluster: a\n    targetCluster: b\n",
            "x.yaml:4: a: is no cluster of",
        ),
        ("x.sh", "kafka-mirror-maker.sh --consumer.config\n", "x.sh:1: --consumer.config: has no value"),
        ("x.sh", "kafka-mirror-maker.sh --whitelist 'a\n", "x.sh:1: the command cannot be read: No closing quotation"),
        ("x.sh", "\nkafka-mirror-maker.sh --whitelist a consumer.config\n", "x.sh:2: consumer.config: is no option of MirrorMaker 1"),
        ("x.sh", "kafka-mirror-maker.sh --whitelist a\nkafka-mirror-maker.sh --whitelist b\n", "holds 2 commands (lines 1, 2)"),
        ("x.properties", "A.consumer.client.id = kafka-mirror-maker\n", "is no config of MirrorMaker"),
        ("x.json", '{"name": "n", "config": {"topics": "p\xe4"}}', "x.json:1: is not UTF-8"),
        ("x.json", "[" * 20_000, "x.json: has more than 50 levels"),
        ("x.yaml", "kind: &a\n- *a\n", "has more than 50 levels, or refers to itself"),
        ("x.yaml", "kind: KafkaMirrorMaker2\nspec:\n  clusters: [a]\n  mirrors: []\n", "clusters: is missing, or is no list"),
        ("x.properties", "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n", "No source->target replication flows"),
        ("x.properties", "a = b\n", "is no config of MirrorMaker"),
        (
            "x.properties",
            "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\n",
            "x.properties: B.bootstrap.servers: is missing",
        ),
        ("x.properties", "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a\n", "x.properties:3: A.bootstrap.servers: must be"),
        (
            "x.properties",
            "connector.class = MirrorCheckpointConnector\nsource.cluster.alias = A\n",
            "the MirrorSourceConnector of A->target is missing",
        ),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
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
        "connector.class = MirrorSourceConnector\nclusters = X, Y\nsource.cluster.alias = A\ntarget.cluster.alias = B\n"
        "source.cluster.bootstrap.servers = a:1\ntarget.cluster.bootstrap.servers = b:1\n"
        "source.cluster.ssl.truststore.password = ${vault:/opt/secrets:key}\n"
    )
    found = import_files([worker, source], SECRETS)
    assert found.entries["A.ssl.truststore.password"].value == "${vault:/opt/secrets:key}"
    assert found.entries["config.providers"].value == "vault"
    assert {row.key for row in found.rows if row.fate is Fate.NO_EFFECT} >= {"plugin.path", "group.id", "clusters"}
    assert loaded(found, tmp_path).flow("A->B")


def test_the_first_sample_of_kip_382_runs_both_flows(tmp_path: Path) -> None:
    path = tmp_path / "mirror-maker.properties"
    path.write_text(
        "clusters = primary, backup\ncluster.primary.broker.list = localhost:9091\ncluster.backup.broker.list = localhost:9092\n"
    )
    found = import_files([path], SECRETS)
    assert found.entries["primary.bootstrap.servers"].value == "localhost:9091"
    assert [flow.name for flow in loaded(found, tmp_path).flows] == ["primary->backup", "backup->primary"]


def body(part: str, **more: object) -> dict[str, object]:
    """A connector of MM2, from A to B; names of properties with `_` for `.`."""
    config = {
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{part}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
    }
    return {"name": part, "config": config | {name.replace("_", "."): value for name, value in more.items()}}


@pytest.fixture
def from_json(tmp_path: Path) -> Callable[..., Imported]:
    """Imports bodies, all in one line as Connect's REST interface gives them."""

    def imports(*bodies: dict[str, object]) -> Imported:
        path = tmp_path / "all.json"
        path.write_text(json.dumps(list(bodies), separators=(",", ":")))
        return import_files([path], SECRETS)

    return imports


@pytest.mark.parametrize(
    ("part", "more", "lost", "dropped"),
    [
        ("Checkpoint", {"topics": "orders"}, ["topics"], []),
        ("Checkpoint", {"topics": ".*"}, [], []),
        ("Checkpoint", {"replication_policy_class": "IdentityReplicationPolicy"}, ["replication.policy.class"], []),
        ("Checkpoint", {"replication_policy_separator": "_"}, ["replication.policy.separator"], []),
        ("Checkpoint", {"replication_factor": "1"}, [], ["replication.factor"]),
        ("Checkpoint", {"source_cluster_security_protocol": "SSL"}, ["source.cluster.security.protocol"], []),
        ("Checkpoint", {"source_cluster_bootstrap_servers": "other:1"}, ["source.cluster.bootstrap.servers"], []),
        ("Checkpoint", {"source_cluster_bootstrap_servers": "a:9092,more:1"}, [], []),
        ("Heartbeat", {"consumer_auto_offset_reset": "latest"}, [], ["consumer.auto.offset.reset"]),
        ("Heartbeat", {"topics": "orders"}, [], ["topics"]),
    ],
)
def test_what_only_another_connector_says_is_not_the_flow_s(
    from_json: Callable[..., Imported], tmp_path: Path, part: str, more: dict[str, object], lost: list[str], dropped: list[str]
) -> None:
    found = from_json(body("Source"), body(part, **more))
    assert list(dict.fromkeys(not_kept(found))) == lost
    assert found.off == ({"A->B"} if lost else frozenset())
    assert {row.key for row in found.rows if row.fate is Fate.NO_EFFECT} >= set(dropped)
    flow = loaded(found, tmp_path).flow("A->B")
    assert (flow.topics, flow.start, flow.separator, flow.replication_factor) == ((".*",), "earliest", ".", 2)
    assert flow.replication_policy_class.endswith(".DefaultReplicationPolicy")


def test_older_names_count_before_connectors_are_compared(from_json: Callable[..., Imported], tmp_path: Path) -> None:
    found = from_json(body("Source", topics_blacklist="secret.*"), body("Checkpoint", topics_exclude="x"))
    assert not_kept(found) == ["topics.exclude"]
    assert loaded(found, tmp_path).flow("A->B").topics_exclude == ("secret.*",)


def test_entries_in_one_line_are_told_apart(from_json: Callable[..., Imported], tmp_path: Path) -> None:
    other = {"source_cluster_alias": "C", "source_cluster_bootstrap_servers": "c:9092"}
    keystore = {"source_cluster_ssl_keystore_location": "/k.pem"}
    found = from_json(body("Source", **keystore), body("Source", **other, **keystore, source_cluster_security_protocol="SSL"))
    assert "C.ssl.keystore.location" in found.entries
    assert "A.ssl.keystore.location" not in found.entries
    found = from_json(body("Source", topics="*bad"), body("Source", **other, topics="orders"))
    assert not_kept(found) == ["topics"]
    assert found.off == {"A->B"}
    assert loaded(found, tmp_path).flow("C->B").topics == ("orders",)


def test_clusters_of_one_alias_must_be_one_cluster(from_json: Callable[..., Imported]) -> None:
    other = {"source_cluster_alias": "C", "source_cluster_bootstrap_servers": "c:9092"}
    found = from_json(body("Source"), body("Source", **other, target_cluster_bootstrap_servers="elsewhere:1"))
    assert not_kept(found) == ["target.cluster.bootstrap.servers"]
    assert found.off == {"A->B", "C->B"}
    found = from_json(body("Source"), body("Source", **other, target_consumer_client_id="x"))
    assert not_kept(found) == ["target.consumer.client.id"], "it would hold for both flows"


def test_stopped_connectors_do_not_run(from_json: Callable[..., Imported], tmp_path: Path) -> None:
    path = tmp_path / "expanded.json"
    answer = {"s": {"info": body("Source"), "status": {"connector": {"state": "PAUSED"}}}}
    path.write_text(json.dumps(answer))
    found = import_files([path], SECRETS)
    assert found.entries["A->B.enabled"].value == "false"
    assert found.off == frozenset()
    stopped = from_json(body("Source"), {**body("Checkpoint"), "initial_state": "STOPPED"})
    assert not loaded(stopped, tmp_path).flow("A->B").mirroring.emit_checkpoints_enabled


def test_connectors_of_others_are_left_out(from_json: Callable[..., Imported], tmp_path: Path) -> None:
    sink = {"name": "sink", "config": {"connector.class": "io.confluent.JdbcSinkConnector", "topics": "a"}}
    imitation = body("Source", connector_class="com.acme.MirrorSourceConnector")
    found = from_json(sink, body("Source", topics="orders"), imitation)
    assert loaded(found, tmp_path).flow("A->B").topics == ("orders",)
    assert any(row.key == "connector.class" and "no connector of MirrorMaker 2" in row.why for row in found.rows)


def test_the_offsets_of_connectors_stay_known(tmp_path: Path, from_json: Callable[..., Imported]) -> None:
    assert loaded(from_json(body("Source", offsets_storage_topic="mine")), tmp_path).flow("A->B").connect_offsets_topic == "mine"
    worker, source = tmp_path / "worker.properties", tmp_path / "source.json"
    worker.write_text("group.id = connect\noffset.storage.topic = connect-offsets\n")
    source.write_text(json.dumps(body("Source")))
    assert loaded(import_files([worker, source], SECRETS), tmp_path).flow("A->B").connect_offsets_topic == "connect-offsets"
    fan_in = loaded(imported("strimzi-fan-in.yaml"), tmp_path)
    assert {flow.connect_offsets_topic for flow in fan_in.flows} == {"mm2-offsets"}


KERBEROS = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = GSSAPI\nA.sasl.jaas.config = x.Krb5LoginModule required;\n"
MM2 = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\n"


@pytest.mark.parametrize(
    ("lines", "lost", "off", "enabled"),
    [
        ("A->B.enabled = true\nA->b.topics = orders\n", ["A->b.topics"], {"A->B"}, {"A->B": "false"}),
        ("enabled = true\nB->A.enabled = false\ntransforms = a\n", ["transforms"], {"A->B"}, {"A->B": "false", "B->A": "false"}),
        ("A->B.enabled = true\nB->A.enabled = false\nA->B.transforms = a\n", ["A->B.transforms"], {"A->B"}, {"A->B": "false"}),
        ("A->B.enabled = true\ntransforms = a\ntransforms = b\n", ["transforms"], {"A->B"}, {"A->B": "false"}),
        (
            f"A->B.enabled = true\n{KERBEROS}",
            ["A.sasl.jaas.config"],
            {"A->B"},
            {"A->B": "false"},
        ),
    ],
)
def test_only_flows_that_would_run_are_switched_off(
    tmp_path: Path, lines: str, lost: list[str], off: set[str], enabled: dict[str, str]
) -> None:
    path = tmp_path / "mm.properties"
    path.write_text(MM2 + lines)
    found = import_files([path], SECRETS)
    assert not_kept(found)[: len(lost)] == lost
    assert found.off == off
    assert {flow: found.entries[f"{flow}.enabled"].value for flow in enabled} == enabled


def test_no_secret_and_no_control_character_leaves_the_import(tmp_path: Path) -> None:
    path = tmp_path / "quelle-\u00fc.properties"
    path.write_text(
        MM2 + 'A->B.enabled = true\nA.security.protocol = SASL_SSL \\\nA.sasl.jaas.config = x required username="u" password="S3CRET";\n'
    )
    found = import_files([path], SECRETS)
    assert "S3CRET" not in "".join(map(repr, found.rows)) + rendered(found, [path])
    evil = tmp_path / "evil.json"
    evil.write_text(json.dumps({**body("Source")["config"], "zz\rA->B.topics=evil\r#": "\x1b[31m"}))  # type: ignore[dict-item]
    found = import_files([evil], SECRETS)
    assert loaded(found, tmp_path).flow("A->B").topics == (".*",)
    assert "\r" not in rendered(found, [Path("a\nA->B.topics = evil")])
    assert all(row.key.isprintable() for row in found.rows)


@pytest.mark.parametrize(
    "before", ["kind: Kafka\nspec: {}\n", "kind: List\nitems:\n- kind: Secret\n", "some: values\n", "- a\n", "# nothing\n"]
)
def test_other_documents_of_a_yaml_file_do_not_matter(before: str, tmp_path: Path) -> None:
    alone = PUBLISHED / "strimzi-v1.yaml"
    path = tmp_path / "all.yaml"
    path.write_text(f"{before}---\n{alone.read_text()}---\nkind: ConfigMap\ndata: {{}}\n")
    found, expected = import_files([path], SECRETS), import_files([alone], SECRETS)
    assert {key: entry.value for key, entry in found.entries.items()} == {key: entry.value for key, entry in expected.entries.items()}


def test_yaml_as_kubernetes_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "mm2.yaml"
    path.write_text(
        "common: &common\n  sync.topic.acls.enabled: no\n  replication.factor: 2\n"
        "kind: KafkaMirrorMaker2\nspec:\n  connectCluster: b\n  clusters:\n"
        "  - {alias: a, bootstrapServers: 'a:1'}\n  - {alias: b, bootstrapServers: 'b:1'}\n"
        "  mirrors:\n  - sourceCluster: a\n    targetCluster: b\n    topicsBlacklistPattern: old\n    topicsExcludePattern: new\n"
        "    sourceConnector:\n      tasksMax: 010\n      config:\n        <<: *common\n        replication.factor: 3\n"
    )
    flow = loaded(import_files([path], SECRETS), tmp_path).flow("a->b")
    assert (flow.tasks_max, flow.replication_factor, flow.mirroring.sync_topic_acls_enabled) == (8, 3, False)
    assert flow.topics_exclude == ("new",)


def test_a_redirection_is_no_part_of_the_topics(tmp_path: Path) -> None:
    for name in ("consumer", "producer"):
        (tmp_path / f"{name}.properties").write_text(f"bootstrap.servers = {name}:9092\n")
    script = tmp_path / "run.sh"
    options = "--consumer.config consumer.properties --producer.config producer.properties"
    for end in ("&", "; echo done", ">> log 2>&1", "| tee log"):
        script.write_text(f"(kafka-mirror-maker.sh {options} --whitelist 'orders'{end}\n")
        assert loaded(import_files([script], SECRETS), tmp_path).flow("source->target").topics == ("orders",)


def test_every_entry_has_a_row(from_json: Callable[..., Imported]) -> None:
    both = body("Source", source_bootstrap_servers="wrong:1", topics_blacklist="a", topics_exclude="b", consumer_client_id="x", unknown="y")
    found = from_json(both)
    assert {row.key for row in found.rows} == set(both["config"])  # type: ignore[call-overload]
    assert found.entries["A.bootstrap.servers"].value == "a:9092"


def test_an_entry_with_a_pasted_pem_text_is_found_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "old.properties"
    key = "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----"
    path.write_text(
        f"clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA.ssl.keystore.key = {key}\n"
    )
    found = import_files([path], SECRETS)
    assert {(row.path, row.line) for row in found.rows if row.fate is Fate.NOT_KEPT} == {(str(path), 5)}
