"""One source, one target for MM2 and one for Ferry, and the same file for both but for the target's address."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from combinations import Combination
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from landscape import differences, look
from tests.opened import carry_out, copied
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.properties_file import write_properties

from ferry.config import load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.syncs.names import AFTER_THE_COPY

SECONDS = 30.0
# MM2 refreshes every second here; each connector still waits for its turn, on a loaded machine for minutes.
CATCH_UP_SECONDS = 300.0
POLL_SECONDS = 1.0
# A run mostly waits for answers.
FLOWS_AT_ONCE = 4
USERS = {"admin": "admin-secret"}

COMMON = {
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "ferry.internal.topics.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.topic.acls.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-secret";',
    # Connect's own, smaller than by default: one process runs all flows.
    "to.offset.storage.replication.factor": "1",
    "to.config.storage.replication.factor": "1",
    "to.status.storage.replication.factor": "1",
    "to.offset.storage.partitions": "1",
    "to.status.storage.partitions": "1",
}
# Refused beside emit.offset-syncs.enabled=false.
OFFSET_SYNCS = {"offset-syncs.topic.replication.factor": "1", "offset-syncs.topic.location": "target"}


def mark(number: int) -> str:
    """What topics and aliases of a combination bear."""
    return f"c{number:02}x"


def properties(combinations: Mapping[str, Combination], source: str, target: str) -> dict[str, str]:
    """The file with these combinations by mark. The target's alias is `to`; each has a source alias of its own, all the same cluster."""
    aliases = [f"{name}from" for name in combinations]
    result = {"clusters": ", ".join([*aliases, "to"]), "to.bootstrap.servers": target, **COMMON}
    for name, chosen in combinations.items():
        alias = f"{name}from"
        result[f"{alias}.bootstrap.servers"] = source
        result[f"{alias}->to.enabled"] = "true"
        result |= {f"{one}->{alias}.emit.heartbeats.enabled": "false" for one in [*aliases, "to"] if one != alias}
        syncs = {} if chosen.properties.get("emit.offset-syncs.enabled") == "false" else OFFSET_SYNCS
        own = {"emit.heartbeats.enabled": "false", "topics": chosen.topics, **syncs, **chosen.properties}
        result |= {f"{alias}->to.{key}": value.format(mark=name) for key, value in own.items()}
    return result


@dataclass(frozen=True)
class Stage:
    """Three clusters and what runs between them. MM2's file holds all combinations, Ferry has one file for each, in `directory`."""

    source: SandboxCluster
    mm2_target: SandboxCluster
    ferry_target: SandboxCluster
    directory: Path
    combinations: Mapping[str, Combination]

    @property
    def marks(self) -> tuple[str, ...]:
        """The combinations' marks."""
        return tuple(self.combinations)

    def mm2_properties(self) -> dict[str, str]:
        """MM2's file."""
        return properties(self.combinations, self.source.bootstrap, self.mm2_target.bootstrap)

    def set_out(self) -> None:
        """The first state of the source."""
        client = AdminClient(self.source.client_settings())
        settings = {"retention.ms": "7000000", "max.message.bytes": "2000000", "cleanup.policy": "compact", "min.insync.replicas": "1"}
        topics = []
        for name in self.marks:
            topics.append(NewTopic(f"{name}-orders", 3, 1, config=settings))
            topics.append(NewTopic(f"{name}-plain", 1, 1))
            topics.append(
                NewTopic(f"{name}-timed", 1, 1, config={"message.timestamp.before.max.ms": "9000000000", "compression.type": "gzip"})
            )
            topics.append(NewTopic(f"{name}-left.replica", 1, 1))
            topics.append(NewTopic(f"{name}-other.internal", 1, 1))
        self._create(client, topics)
        bindings = []
        for name in self.marks:
            bindings += [
                _acl(f"{name}-orders", "alice", AclOperation.READ),
                _acl(f"{name}-orders", "bob", AclOperation.WRITE),
                _acl(f"{name}-orders", "carol", AclOperation.ALL),
                _acl(f"{name}-orders", "dave", AclOperation.WRITE, AclPermissionType.DENY),
                _acl(f"{name}-later", "erin", AclOperation.DESCRIBE),
                _acl(f"{name}-o", "frank", AclOperation.READ, pattern=ResourcePatternType.PREFIXED),
                _acl(f"{name}-g", "gina", AclOperation.READ, kind=ResourceType.GROUP),
                _acl(f"{name}-left.replica", "hans", AclOperation.READ),
            ]
        _all(client.create_acls(bindings))

    def change(self) -> None:
        """The second state: configs changed and removed, partitions, a topic and ACLs added, a config set on the remote side only."""
        client = AdminClient(self.source.client_settings())
        changes = []
        for name in self.marks:
            changes.append(_altered(f"{name}-orders", {"retention.ms": "8000000", "max.message.bytes": None, "segment.ms": "600000"}))
            changes.append(_altered(f"{name}-timed", {"compression.type": None}))
        _all(client.incremental_alter_configs(changes))
        _all(client.create_partitions([NewPartitions(f"{name}-plain", 4) for name in self.marks]))
        self._create(client, [NewTopic(f"{name}-later", 2, 1, config={"retention.ms": "3000000"}) for name in self.marks])
        _all(client.create_acls([_acl(f"{name}-plain", "ines", AclOperation.ALTER_CONFIGS) for name in self.marks]))
        for target in (self.mm2_target, self.ferry_target):
            remote = AdminClient(target.client_settings())
            names = [name for name in remote.list_topics(timeout=SECONDS).topics if name.endswith("-orders")]
            _all(remote.incremental_alter_configs([_altered(name, {"flush.messages": "1000"}) for name in names]))

    @staticmethod
    def _create(client: AdminClient, topics: Sequence[NewTopic]) -> None:
        """Returns when the broker tells of them: a run before that would find nothing to do."""
        _all(client.create_topics(list(topics)))
        names = {topic.topic for topic in topics}
        until(lambda: names <= client.list_topics(timeout=SECONDS).topics.keys(), lambda: f"not every topic was created: {sorted(names)}")

    def run_ferry(self) -> dict[str, list[str]]:
        """One run of every flow, some at a time; by mark, what failed."""
        with ThreadPoolExecutor(FLOWS_AT_ONCE) as pool:
            return dict(zip(self.marks, pool.map(self._run, self.marks), strict=True))

    def _run(self, name: str) -> list[str]:
        file = properties({name: self.combinations[name]}, self.source.bootstrap, self.ferry_target.bootstrap)
        flow = load_config(write_properties(file, self.directory / f"{name}.properties")).flows[0]
        request = RunRequest(flow.name, f"parity-{name}-{time.time_ns()}")
        report = copied(flow, request, lambda run: run.copy(InlineLaneRunner(), lambda _: None))
        outcomes = [carry_out(flow, sync, run_id=request.run_id) for sync in AFTER_THE_COPY]
        return [str(failure) for outcome in outcomes for failure in outcome.failed] + [str(one) for one in report.failed]

    def compare(self) -> dict[str, list[str]]:
        """Differences by mark, once MM2 has had the time to come as far as Ferry."""
        mine = look(self.ferry_target.client_settings())
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while True:
            theirs = look(self.mm2_target.client_settings())
            found = {name: differences(mine.of(name), theirs.of(name)) for name in self.marks}
            if not any(found.values()) or time.monotonic() > deadline:
                return found
            time.sleep(POLL_SECONDS)


def _acl(
    name: str,
    user: str,
    operation: AclOperation,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    *,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    kind: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)


def _altered(topic: str, values: Mapping[str, str | None]) -> ConfigResource:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    for name, value in values.items():
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=operation))
    return resource


def _all(futures: Mapping[object, object]) -> None:
    for future in futures.values():
        future.result(SECONDS)  # type: ignore[attr-defined]
