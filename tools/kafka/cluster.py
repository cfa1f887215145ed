"""One-node clusters on 127.0.0.1 for tests and benchmarks: started, killed, paused, resumed, stopped.

Beyond `LocalBroker` they take broker properties, logins, an authorizer and a release of Kafka. Unless it is `detached`, a cluster ends with
the process that started it (`guard.py`).
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tools.kafka.access import listener_properties, login_settings
from tools.kafka.class_archive import class_archive
from tools.kafka.guard import guard
from tools.kafka.releases import broker_coordinates, needs_zookeeper
from tools.kafka.storage import copy_storage
from tools.kafka.zookeeper import run_zookeeper, stop_zookeeper, zookeeper_settings

from ferry.sandbox.broker import ANSWER_SECONDS, JAVA_OPTIONS, STATE_FILE, LocalBroker
from ferry.sandbox.broker_process import SandboxFailed
from ferry.sandbox.jars import KAFKA_VERSION, resolve_jars
from ferry.sandbox.ports import free_ports, listens
from ferry.sandbox.server_properties import DATA, NODE, SANDBOX, format_storage, kraft_settings, new_cluster_id, write_settings

STOPPED_POLL_SECONDS = 0.001
# A listener on the cluster's own port that asks for no login and no TLS, as `settings` may name it.
OPEN = "PLAINTEXT://127.0.0.1:{port}"
OPEN_LISTENER = re.compile(rf"(^|,){re.escape(OPEN)}(,|$)")


@dataclass
class SandboxCluster(LocalBroker):
    """A running (or stopped) cluster; `settings` are its extra broker properties."""

    settings: dict[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = JAVA_OPTIONS
    users: dict[str, str] = field(default_factory=dict)
    authorizer: bool = False
    detached: bool = False
    version: str = KAFKA_VERSION
    classes: str = ""

    def __post_init__(self) -> None:
        self.java_options = tuple(self.java_options)  # a list where it is loaded

    @classmethod
    def start(
        cls,
        directory: Path,
        name: str,
        *,
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = JAVA_OPTIONS,
        features: Sequence[str] = (),
        users: Mapping[str, str] | None = None,
        authorizer: bool = False,
        detached: bool = False,
        ports: tuple[int, int] | None = None,
        cluster_id: str = "",
        version: str = KAFKA_VERSION,
        classes: str = "",
    ) -> Self:
        """Format and start a cluster; returns when it answers. SandboxFailed with the end of its log otherwise, and no process stays.

        properties: broker properties that come on top of the sandbox's; `{port}` and `{controller_port}` in values become its ports.
        features: `name=level` for the format, e.g. transaction.version=1.
        users: user → password; clients must then log in by SASL PLAIN. The first one is the broker's own and super user.
        authorizer: everybody but the super user needs ACLs.
        detached: it outlives this process, and is stopped by `load(directory).stop()`.
        ports, cluster_id: for clients and the controller, and of the whole cluster, where this is one node of several (`brokers.py`).
        version: the release of Kafka; the old ones get a ZooKeeper of their own, on what is the controller's port elsewhere.
        classes: a directory with classes beside Kafka's, which `properties` may name.
        """
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        port, controller_port = ports or free_ports(2)
        cluster = cls(name, directory, port, controller_port, settings=dict(properties or {}), java_options=tuple(java_options))
        cluster.users, cluster.authorizer, cluster.detached, cluster.version = dict(users or {}), authorizer, detached, version
        cluster.classes = classes
        if not detached:
            guard.watch(cluster.properties_file)
        cluster._write_settings()
        if not cluster.has_zookeeper:
            cluster._format(cluster_id or new_cluster_id(), features)
        cluster.run()
        return cluster

    @property
    def node(self) -> int:
        """Its node id."""
        return int(self.settings.get("node.id", NODE))

    @property
    def has_zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper: by its release, or by an older protocol between brokers."""
        return needs_zookeeper(self.settings.get("inter.broker.protocol.version", self.version))

    @property
    def jars(self) -> Path:
        """The directory with the jars of its release."""
        return resolve_jars("kafka", broker_coordinates(self.version))

    @property
    def class_path(self) -> str:
        """Where its JVM finds classes: Kafka's first, or its class archive would not fit."""
        return f"{super().class_path}:{self.classes}" if self.classes else super().class_path

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """librdkafka settings that reach it, as `user` (default: the super user) where it wants a login."""
        settings = {"bootstrap.servers": self.bootstrap}
        if self.users:
            name = user or next(iter(self.users))
            settings |= login_settings(name, self.users[name])
        return settings

    def answers(self) -> bool:
        """Whether a client learns from it that it takes part; without a listener that is open to all it only has to listen."""
        if not OPEN_LISTENER.search(self.settings.get("listeners", OPEN)):
            return listens(self.port)
        client = AdminClient({**self.client_settings(), "log_level": 0})
        try:
            return self.node in client.list_topics(timeout=ANSWER_SECONDS).brokers
        except KafkaException:
            return False

    def restart(self) -> None:
        """Stop if needed, then start again on the same ports and data."""
        self.stop()
        self.run()

    def stop(self) -> None:
        """Let it shut down, with its ZooKeeper; kill it when it takes too long. Nothing happens when it does not run."""
        super().stop()
        stop_zookeeper(self.directory)

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers. SandboxFailed when it does not run."""
        process = self._signal(signal.SIGSTOP)
        while process.status() not in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}:  # until then its threads still answer
            time.sleep(STOPPED_POLL_SECONDS)

    def resume(self) -> None:
        """SIGCONT. SandboxFailed when it does not run."""
        self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nobody reads its data any more, so it need not take the seconds of an orderly end."""
        self.kill()
        stop_zookeeper(self.directory)

    def _signal(self, number: int) -> psutil.Process:
        process = self._process()
        if process is None:
            raise SandboxFailed(f"cluster {self.name} does not run")
        process.send_signal(number)
        return process

    def _write_settings(self) -> None:
        port, controller_port = str(self.port), str(self.controller_port)
        zookeeper = self.has_zookeeper
        settings = {
            **(zookeeper_settings(self.controller_port) if zookeeper else kraft_settings(self.controller_port)),
            **SANDBOX,
            # Or the controller would write, and flush, a record without content twice a second.
            "metadata.max.idle.interval.ms": "0",
            "log.dirs": str(self.directory / DATA),
            **listener_properties(self.users, self.port, None if zookeeper else self.controller_port, authorizer=self.authorizer),
            **{key: value.replace("{port}", port).replace("{controller_port}", controller_port) for key, value in self.settings.items()},
        }
        self.properties_file.touch(mode=0o600)  # it may hold passwords
        write_settings(self.properties_file, settings)

    def _format(self, cluster_id: str, features: Sequence[str]) -> None:
        if self.version == KAFKA_VERSION and not features and "log.dirs" not in self.settings:
            copy_storage(self.directory / DATA, cluster_id, self.node)
            return
        options = [option for feature in features for option in ("--feature", feature)]
        format_storage(self.properties_file, self.jars, cluster_id, options, self._archive())

    def _java_options(self) -> Sequence[str]:
        return (*self.java_options, *self._archive())

    def _archive(self) -> tuple[str, ...]:
        return class_archive() if self.version == KAFKA_VERSION else ()

    def _launch(self) -> None:
        if not self.detached:
            guard.watch(self.properties_file)
        try:
            if self.has_zookeeper:
                run_zookeeper(self.directory, self.controller_port, self.jars, detached=self.detached)
            super()._launch()
        except BaseException:
            stop_zookeeper(self.directory)
            raise

    def _save(self) -> None:
        (self.directory / f"{STATE_FILE}.new").touch(mode=0o600)  # it may hold passwords
        super()._save()
