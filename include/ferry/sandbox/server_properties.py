"""The server.properties of a sandbox broker, and the storage that belongs to it."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from ferry.sandbox.access import listener_properties
from ferry.sandbox.broker_process import STORAGE_TOOL
from ferry.sandbox.failure import SandboxFailed
from ferry.sandbox.jars import java

# A storage tool that hangs would hang whoever starts a cluster.
FORMAT_SECONDS = 60.0
REASON_LINES = 5
LISTENER_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
}
ZOOKEEPER = {
    "broker.id": "1",
    # A broker that was killed is not let in again before its last session ended; ten of ZooKeeper's ticks.
    "zookeeper.session.timeout.ms": "5000",
    "zookeeper.connection.timeout.ms": "30000",
}
SANDBOX = {
    "listener.security.protocol.map": LISTENER_PROTOCOLS,
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


def write_server_properties(
    path: Path,
    ports: tuple[int, int],
    extra: Mapping[str, str],
    users: Mapping[str, str],
    *,
    authorizer: bool,
    zookeeper: bool = False,
) -> None:
    """Write the properties of a broker whose data lies beside `path`. `ports`: for clients, for the controller or ZooKeeper. `extra` wins.

    The file may hold passwords: only its owner reads it.
    """
    port, controller_port = ports
    kind = (
        {**ZOOKEEPER, "zookeeper.connect": f"127.0.0.1:{controller_port}"}
        if zookeeper
        else {**KRAFT, "controller.quorum.voters": f"1@127.0.0.1:{controller_port}"}
    )
    settings = {
        **kind,
        **SANDBOX,
        "log.dirs": str(path.parent / "data"),
        **listener_properties(users, port, None if zookeeper else controller_port, authorizer=authorizer),
        **{key: value.replace("{port}", str(port)).replace("{controller_port}", str(controller_port)) for key, value in extra.items()},
    }
    path.touch(mode=0o600)
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="latin-1")


def new_cluster_id() -> str:
    """A cluster id as Kafka makes them: 16 random bytes."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_storage(path: Path, jars: Path, features: Sequence[str], identity: str = "") -> None:
    """Give the storage of that server.properties a cluster id (a new one by default). `features`: `name=level`; `jars`: of its release.

    SandboxFailed with what the tool said.
    """
    identity = identity or new_cluster_id()
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", STORAGE_TOOL, "format"]
    command += [f"--cluster-id={identity}", "--config", str(path)]  # an id may begin with a dash
    for feature in features:
        command += ["--feature", feature]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FORMAT_SECONDS)
    except subprocess.TimeoutExpired:
        raise SandboxFailed(f"{path}: the storage tool did not end within {FORMAT_SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stdout + done.stderr
        # It prints all its settings before the reason.
        reason = said[max(0, said.rfind("Exception in thread")) :].strip().splitlines()[:REASON_LINES]
        raise SandboxFailed("\n".join([f"{path}: formatting failed:", *reason]))
