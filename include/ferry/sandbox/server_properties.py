"""The server.properties of a sandbox broker, and the storage that belongs to it."""

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from ferry.sandbox.broker_process import STORAGE_TOOL, SandboxFailed
from ferry.sandbox.jars import java

# A storage tool that hangs must not block the start of a cluster.
FORMAT_SECONDS = 60.0
REASON_LINES = 5
NODE = 1
# Data directory, relative to the directory of server.properties.
DATA = "data"
SANDBOX = {
    # One broker: nothing can be replicated; few partitions start quickly.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "1000",
    "auto.create.topics.enable": "false",
}


def server_settings(path: Path, port: int, controller_port: int) -> dict[str, str]:
    """Settings of a broker whose server.properties is `path`. `port` is for clients."""
    return {
        **kraft_settings(controller_port),
        **SANDBOX,
        "log.dirs": str(path.parent / DATA),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }


def kraft_settings(controller_port: int) -> dict[str, str]:
    """A broker that is its own controller."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{NODE}@127.0.0.1:{controller_port}",
    }


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="latin-1")


def new_cluster_id() -> str:
    """A cluster id as Kafka makes them: 16 random bytes."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_storage(path: Path, jars: Path, identity: str, options: Sequence[str] = (), java_options: Sequence[str] = ()) -> None:
    """Give the storage its cluster id. `jars`: of its release. `options`: of the storage tool. SandboxFailed with what the tool said."""
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", *java_options, "-cp", f"{jars}/*", STORAGE_TOOL, "format"]
    command += [f"--cluster-id={identity}", "--config", str(path), *options]  # an id may begin with a dash
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FORMAT_SECONDS)
    except subprocess.TimeoutExpired:
        raise SandboxFailed(f"{path}: the storage tool did not end within {FORMAT_SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stdout + done.stderr
        # The tool prints all its settings before the reason.
        reason = said[max(0, said.rfind("Exception in thread")) :].strip().splitlines()[:REASON_LINES]
        raise SandboxFailed("\n".join([f"{path}: formatting failed:", *reason]))
