"""MirrorClient and RemoteClusterUtils: the same answers as MM2's Java classes give, over a chain of three clusters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.opened import sync_checkpoints
from tools.kafka import read_all
from tools.kafka.groups import commit_offsets
from typer.testing import CliRunner

from ferry import client
from ferry.cli.main import app
from ferry.client import MirrorClient, OffsetAndMetadata, TopicPartition
from ferry.client.remote_cluster import connect
from ferry.errors import ArgumentError
from ferry.policy.naming import DefaultReplicationPolicy, IdentityReplicationPolicy

pytestmark = pytest.mark.brokers

Ask = Callable[..., str]
RECORDS = 1_000
FORMATTERS = "org.apache.kafka.connect.mirror.formatters"
MIRROR = "org.apache.kafka.connect.mirror"


def joined(names: set[str]) -> str:
    return ",".join(sorted(names))


def as_java(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> str:
    return ",".join(sorted(f"{topic}-{partition}={offset}/{text}" for (topic, partition), (offset, text) in offsets.items()))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_topics_clusters_and_hops(chain: Any, ask_java: Ask, place: int) -> None:
    cluster, properties = chain.aliases[place], chain.properties(place)
    assert joined(client.heartbeat_topics(chain.path, cluster)) == ask_java("heartbeats", properties)
    assert joined(client.checkpoint_topics(chain.path, cluster)) == ask_java("checkpoints", properties)
    assert joined(client.upstream_clusters(chain.path, cluster)) == ask_java("upstream", properties)
    for alias in (*chain.aliases, "nobody"):
        assert str(client.replication_hops(chain.path, cluster, alias)) == ask_java("hops", properties, alias)


def test_what_the_chain_looks_like(chain: Any) -> None:
    a, b, c = chain.aliases
    assert client.heartbeat_topics(chain.path, c) == {"heartbeats", f"{b}.heartbeats", f"{b}.{a}.heartbeats"}
    assert client.upstream_clusters(chain.path, c) == {a, b}
    assert [client.replication_hops(chain.config, c, alias) for alias in (a, b, c)] == [2, 1, -1]
    assert f"{a}.checkpoints.internal" in client.checkpoint_topics(chain.path, b)
    with connect(chain.path, c) as third:
        assert third.remote_topics() == {f"{b}.{a}.{chain.topic}", f"{b}.heartbeats", f"{b}.{a}.heartbeats"}
        assert third.remote_topics(a) == set()


@pytest.mark.parametrize(
    ("policy", "java_policy"),
    [
        (DefaultReplicationPolicy("-", "-"), {"replication_policy_separator": "-"}),
        (
            DefaultReplicationPolicy("_", "."),
            {"replication_policy_separator": "_", "replication_policy_internal_topic_separator_enabled": "false"},
        ),
        (IdentityReplicationPolicy(), {"replication_policy_class": f"{MIRROR}.IdentityReplicationPolicy"}),
        (
            IdentityReplicationPolicy(source_alias="A"),
            {"replication_policy_class": f"{MIRROR}.IdentityReplicationPolicy", "source_cluster_alias": "A"},
        ),
    ],
)
def test_other_policies_interpret_names_differently(chain: Any, ask_java: Ask, policy: Any, java_policy: dict[str, str]) -> None:
    for place in (1, 2):
        properties = chain.properties(place, **java_policy)
        with MirrorClient(chain.config.clusters[chain.aliases[place]], policy) as asked:
            assert joined(asked.heartbeat_topics()) == ask_java("heartbeats", properties)
            assert joined(asked.checkpoint_topics()) == ask_java("checkpoints", properties)
            assert joined(asked.remote_topics()) == ask_java("remote", properties)
            assert joined(asked.upstream_clusters()) == ask_java("upstream", properties)
            for alias in (*chain.aliases[:2], "A"):
                assert joined(asked.remote_topics(alias)) == ask_java("remote", properties, alias)


def test_offsets_of_groups(chain: Any, ask_java: Ask, caplog: pytest.LogCaptureFixture) -> None:
    a, b, _ = chain.aliases
    remote, properties = f"{a}.{chain.topic}", chain.properties(1)
    found = client.translate_offsets(chain.path, b, a, "g.1", 20)
    assert found == {TopicPartition(remote, 0): OffsetAndMetadata(11, "näher"), TopicPartition(remote, 1): OffsetAndMetadata(3, "")}
    assert "the record at 0:2 cannot be read" in caplog.text
    for group in ("g.1", "g", "nobody"):
        assert as_java(client.translate_offsets(chain.path, b, a, group, 20)) == ask_java("translate", properties, a, group)
    for pattern in ("g.1", r"g\.1", "g", "(?:other|g).*", "gr..e"):
        groups = client.translate_offsets_matching(chain.path, b, a, pattern, 20)
        assert "|".join(f"{group}:{as_java(offsets)}" for group, offsets in sorted(groups.items())) == ask_java(
            "translate-pattern", properties, a, pattern
        )


def test_missing_topics_and_clusters_are_named(chain: Any) -> None:
    a, b, _ = chain.aliases
    with pytest.raises(ArgumentError, match=r"has no topic nobody\.checkpoints\.internal"):
        client.translate_offsets(chain.path, b, "nobody", "g", 5)
    with pytest.raises(ArgumentError, match="there is no cluster X; clusters: "):
        client.heartbeat_topics(chain.path, "X")
    with pytest.raises(ArgumentError, match="pattern is empty"):
        client.translate_offsets_matching(chain.path, b, a, "", 5)


def test_mm2s_store_translates_by_the_offset_syncs(chain: Any, ask_java: Ask) -> None:
    a, b, _ = chain.aliases
    entries = {
        "name": "checkpoints",
        "connector.class": f"{MIRROR}.MirrorCheckpointConnector",
        "source.cluster.alias": a,
        "target.cluster.alias": b,
        "source.cluster.bootstrap.servers": chain.clusters[a].bootstrap,
        "target.cluster.bootstrap.servers": chain.clusters[b].bootstrap,
        "offset-syncs.topic.location": "target",
    }
    properties = ";".join(f"{name}={value}" for name, value in entries.items())
    remote = [record.offset for record in read_all(chain.clusters[b].client_settings(), f"{a}.{chain.topic}")[0]]
    newest = len(remote) - 1

    def translated(upstreams: Iterable[int]) -> list[int]:
        return [int(text) for text in ask_java("downstream", properties, chain.topic, "0", ",".join(map(str, upstreams))).split(",")]

    # Records that have a sync (the one 800 back is too near the first to be kept), and what lies between: one more than the sync below.
    synced = [0, newest - 400, newest - 200, newest - 100, newest]
    assert translated(synced) == [remote[upstream] for upstream in synced]
    assert translated([newest - 150, newest + 5]) == [remote[newest - 200] + 1, remote[newest] + 1]
    everywhere = range(0, newest, 37)
    skipped = [up for up, down in zip(everywhere, translated(everywhere), strict=True) if not 0 <= down <= remote[up]]
    assert skipped == []
    assert ask_java("downstream", properties, "another", "0", "5") == "none"


def test_kafkas_formatters_print_the_records(chain: Any, ask_java: Ask) -> None:
    a, b, _ = chain.aliases
    properties = chain.properties(1)
    beats = ask_java("format", properties, "heartbeats", f"{FORMATTERS}.HeartbeatFormatter").split("|")
    own = [line for line in beats if f"sourceClusterAlias={a}," in line]
    assert len(own) == 1
    assert re.fullmatch(rf"Heartbeat\{{sourceClusterAlias={a}, targetClusterAlias={b}, timestamp=\d{{13}}\}}", own[0])
    remote = [record.offset for record in read_all(chain.clusters[b].client_settings(), f"{a}.{chain.topic}")[0]]
    syncs = ask_java("format", properties, f"mm2-offset-syncs.{a}.internal", f"{FORMATTERS}.OffsetSyncFormatter").split("|")
    assert syncs[-1] == f"OffsetSync{{topicPartition={chain.topic}-0, upstreamOffset={RECORDS - 1}, downstreamOffset={remote[-1]}}}"


def test_java_reads_the_checkpoint_of_a_real_group(chain: Any, ask_java: Ask) -> None:
    """A group that reads at the second cluster, checkpointed by a run of the second flow; what is at its place, both sides."""
    _, b, c = chain.aliases
    topic = f"{chain.aliases[0]}.{chain.topic}"
    place = read_all(chain.clusters[b].client_settings(), topic)[0][700]
    commit_offsets(chain.clusters[b].client_settings(), "real", {(topic, 0): place.offset})
    flow = chain.config.flow(f"{b}->{c}")
    assert sync_checkpoints(flow).failed == ()
    checkpoints = f"{b}.checkpoints.internal"
    (image,) = client.translate_offsets(chain.path, c, b, "real", 20).values()
    lines = ask_java("format", chain.properties(2), checkpoints, f"{FORMATTERS}.CheckpointFormatter").split("|")
    (line,) = [line for line in lines if "consumerGroupId=real," in line]
    assert f"topicPartition={b}.{topic}-0, upstreamOffset={place.offset}, downstreamOffset={image.offset}" in line
    answer = ask_java("translate", chain.properties(2), b, "real")
    assert answer.startswith(f"{b}.{topic}-0={image.offset}/")
    following = [record for record in read_all(chain.clusters[c].client_settings(), f"{b}.{topic}")[0] if record.offset >= image.offset]
    assert (following[0].value, len(following)) == (place.value, 300)


def test_the_commands_say_the_same(chain: Any) -> None:
    a, b, c = chain.aliases

    def ask(cluster: str, *words: str) -> Any:
        done = CliRunner().invoke(app, ["client", str(chain.path), "--cluster", cluster, *words, "--json"])
        assert done.exit_code == 0, done.output
        answer = json.loads(done.stdout)
        assert (answer.pop("version"), answer.pop("cluster")) == (1, cluster)
        return answer

    assert ask(c, "replication-hops", "--source", a) == {"source": a, "hops": 2}
    assert ask(c, "upstream-clusters") == {"clusters": sorted([a, b])}
    assert ask(c, "heartbeat-topics") == {"topics": sorted(client.heartbeat_topics(chain.path, c))}
    assert f"{a}.checkpoints.internal" in ask(b, "checkpoint-topics")["topics"]
    copies = [f"{b}.{a}.{chain.topic}", f"{b}.{a}.heartbeats", f"{b}.heartbeats"]
    assert ask(c, "remote-topics", "--source", b) == {"source": b, "topics": sorted(copies)}
    (entry,) = ask(b, "translate-offsets", "--source", a, "--group-pattern", "gx?1")["offsets"]
    assert entry == {"group": "gx1", "topic": f"{a}.{chain.topic}", "partition": 0, "offset": 7, "metadata": "m"}
    lines = CliRunner().invoke(app, ["client", "--cluster", c, str(chain.path), "upstream-clusters"]).stdout.split()
    assert lines == sorted([a, b])


def test_null_values_and_other_versions_do_not_end_a_read(chain: Any) -> None:
    """Last, because a null value ends Java's read."""
    a, b, _ = chain.aliases
    producer = Producer(chain.clusters[b].client_settings())
    key = b"\0\3g.1" + len(f"{a}.{chain.topic}").to_bytes(2, "big") + f"{a}.{chain.topic}".encode() + bytes(4)
    for value in (None, b"\0\1" + bytes(18), bytes(2) + (20).to_bytes(8, "big") + (21).to_bytes(8, "big") + bytes(2)):
        producer.produce(f"{a}.checkpoints.internal", value, key)
    assert producer.flush(30) == 0
    assert client.translate_offsets(chain.path, b, a, "g.1", 20)[TopicPartition(f"{a}.{chain.topic}", 0)] == (21, "")
