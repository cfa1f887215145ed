"""`ferry run` with the files of single connectors: each does its own part of the flow and nothing else."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.conftest import Lab
from tools.kafka import read_all

from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")


@pytest.mark.long
def test_a_heartbeat_connector_copies_nothing_and_a_source_connector_beats_nothing(tmp_path: Path, lab: Lab) -> None:
    topic, source, target = lab.topic(lab.source), f"a{secrets.token_hex(4)}", f"b{secrets.token_hex(4)}"
    lab.produce(lab.source, topic, [(0, None, b"%d" % number) for number in range(5)])
    documents = {}
    for part in ("MirrorHeartbeatConnector", "MirrorSourceConnector"):
        config = tmp_path / f"{part}.properties"
        lines = [
            f"connector.class = org.apache.kafka.connect.mirror.{part}",
            f"source.cluster.alias = {source}",
            f"target.cluster.alias = {target}",
            f"source.cluster.bootstrap.servers = {lab.source.bootstrap}",
            f"target.cluster.bootstrap.servers = {lab.target.bootstrap}",
            f"topics = {topic}",
            "replication.factor = 1",
            "ferry.internal.topics.replication.factor = 1",
            "heartbeats.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            "sync.topic.acls.enabled = false",
            "heartbeats.replication.enabled = false",
        ]
        config.write_text("\n".join(lines) + "\n")
        command = [FERRY, "run", str(config), "--flow", f"{source}->{target}", "--master", "inline", "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == ExitCode.DONE, done.stderr
        documents[part] = json.loads(done.stdout)
        names = set(AdminClient(lab.target.client_settings()).list_topics(timeout=15).topics)
        assert (f"{source}.{topic}" in names) == (part == "MirrorSourceConnector")
    heartbeat, copy = documents["MirrorHeartbeatConnector"], documents["MirrorSourceConnector"]
    assert (heartbeat["partitions"], copy["totals"]["records"]) == ([], 5)
    assert "the config is that of a connector that copies no records" in str(heartbeat["skipped"])
    assert [record.value for record in read_all(lab.target.bootstrap, f"{source}.{topic}")[0]] == [b"%d" % number for number in range(5)]
    keys = [record.key for side in read_all(lab.target.bootstrap, "heartbeats") for record in side]
    assert sum(source.encode() in (key or b"") for key in keys) == 1
