"""An administrator creates all topics with the commands of docs/internal-topics.md; then a flow runs without any right to create one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.both_clusters import both_clusters
from tests.documents.code_blocks import blocks_of
from tests.opened import copied, plan_run
from tests.permissions.landscape import ADMIN, USERS, WRITER, Side
from tests.permissions.variants import MODULE
from tools.kafka import compare_topics
from tools.kafka.jars import tools_jars

from ferry.clusters.admin.acl_binding import AclResource
from ferry.config import load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.permissions.required import required_rights
from ferry.permissions.rights import Operation, Right
from ferry.pipeline.run import open_run
from ferry.sandbox.jars import java

pytestmark = [pytest.mark.brokers, pytest.mark.long]

PAGE = Path(__file__).parents[2] / "docs" / "internal-topics.md"
TOPIC = "orders"
TOOL_SECONDS = 240


def grows(right: Right) -> bool:
    """Whether it is for new topics or more partitions."""
    return right.operation is Operation.CREATE or (right.operation is Operation.ALTER and right.resource.kind is AclResource.TOPIC)


def login(user: str, prefix: str = "") -> list[str]:
    return [
        f"{prefix}security.protocol = SASL_PLAINTEXT",
        f"{prefix}sasl.mechanism = PLAIN",
        f'{prefix}sasl.jaas.config = {MODULE} required username="{user}" password="{USERS[user]}";',
    ]


def test_the_commands_of_the_page_are_enough(tmp_path: Path) -> None:
    with both_clusters(tmp_path, users=USERS, authorizer=True) as (source, target):
        reader, writer = Side.of(source, ADMIN), Side.of(target, WRITER)
        reader.create_topic(TOPIC, partitions=3)
        reader.produce(TOPIC, map(str, range(50)))
        as_administrator(tmp_path, target.bootstrap)
        config = tmp_path / "mm2.properties"
        lines = ["clusters = A, B", f"A.bootstrap.servers = {source.bootstrap}", f"B.bootstrap.servers = {target.bootstrap}"]
        lines += [*login(ADMIN, "A."), *login(WRITER, "B."), "A->B.enabled = true", f"A->B.topics = {TOPIC}"]
        config.write_text("\n".join([*lines, "B->A.emit.heartbeats.enabled = false"]) + "\n", encoding="latin-1")
        (flow,) = load_config(config).flows
        made = writer.topics()
        writer.allow(right for right in required_rights(flow).target if not grows(right))

        request = RunRequest(flow.name, "first")
        plan = plan_run(flow, request)
        assert (plan.topics.create, plan.failed, plan.wrong_topics, plan.few_replicas) == ((), (), (), ())
        assert copied(flow, request, lambda run: run.copy(InlineLaneRunner(), lambda _: None)).exit_code is ExitCode.DONE
        with open_run(flow, request) as run:
            assert {outcome.sync: outcome.failed for outcome in run.sync() if outcome.failed} == {}
        assert writer.topics() - made <= {"__transaction_state", "__consumer_offsets"}
        addresses = (cluster.client_settings() for cluster in (source, target))
        assert compare_topics(*addresses, {TOPIC: f"A.{TOPIC}"}).equal


def as_administrator(directory: Path, bootstrap: str) -> None:
    """Run the page's commands with Kafka's own tool."""
    (commands,) = [block.text for block in blocks_of(PAGE) if "kafka-topics.sh" in block.text]
    (directory / "admin.properties").write_text("\n".join(login(ADMIN)) + "\n")
    tool = directory / "kafka-topics.sh"
    tool.write_text(f'#!/bin/bash\nexec {java()} -XX:TieredStopAtLevel=1 -cp "{tools_jars()}/*" org.apache.kafka.tools.TopicCommand "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}
    script = commands.replace("b1.example:9092", bootstrap)
    done = subprocess.run(
        ["/bin/bash", "-e"], input=script, text=True, check=False, capture_output=True, env=environment, cwd=directory, timeout=TOOL_SECONDS
    )
    assert done.returncode == 0, done.stderr + done.stdout
