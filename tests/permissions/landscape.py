"""Two clusters that deny by default, a user for each side, and a flow with something to do for every feature.

`Side.allow` gives its user exactly the given rights and waits until the broker goes by them. `Stage.errands` are all that Ferry does for a
flow, step by step; each tells its complaints.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
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
from tests.opened import (
    carry_out,
    compact_ledger,
    copied,
    explain_group,
    flow_status,
    plan_run,
    read_receipts,
    seed,
    translated_groups,
    verify,
)
from tests.waiting import until
from tools.kafka import SandboxCluster
from tools.kafka.groups import commit_offsets
from tools.kafka.topics import delete_topics

from ferry.client import remote_cluster
from ferry.clusters.admin.acl_binding import AclPattern, AclResource
from ferry.config import Flow, load_config
from ferry.copying.lane_runner import InlineLaneRunner
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode, FerryError, worst_exit_code
from ferry.ledger.run_report import RunReport
from ferry.migration.positions import GivenPositions
from ferry.monitoring.ledger_ranges import covered_ranges
from ferry.permissions.rights import Right
from ferry.syncs.names import SyncName
from ferry.verify.range_runner import verify_inline
from ferry.verify.request import VerifyRequest

ADMIN, READER, WRITER = "admin", "reader", "writer"
USERS = {user: f"{user}-{secrets.token_hex(8)}" for user in (ADMIN, READER, WRITER)}
RECORDS = 20
WORDS = ("authoriz", "authoris", "allow", "grant", "hides", "denied", "permission", "not visible")

_KINDS = {
    AclResource.TOPIC: ResourceType.TOPIC,
    AclResource.GROUP: ResourceType.GROUP,
    AclResource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    AclResource.CLUSTER: ResourceType.BROKER,
}
_OPERATIONS = {"DescribeConfigs": AclOperation.DESCRIBE_CONFIGS, "AlterConfigs": AclOperation.ALTER_CONFIGS}


@dataclass(frozen=True)
class Complaint:
    """Something that was not done: in which errand, of which class, with which exit code."""

    errand: str
    error: str
    problem: str
    code: ExitCode

    def __str__(self) -> str:
        return f"{self.errand}: {self.error} ({int(self.code)}): {self.problem}"


@dataclass
class Side:
    """One cluster with its administrator and the one user that gets rights."""

    cluster: SandboxCluster
    user: str
    admin: AdminClient

    @classmethod
    def of(cls, cluster: SandboxCluster, user: str) -> Side:
        return cls(cluster, user, AdminClient(cluster.client_settings()))

    @property
    def principal(self) -> str:
        return f"User:{self.user}"

    def allow(self, rights: Iterable[Right]) -> None:
        """The user gets these rights, and has no others."""
        wanted = {_binding(right, self.principal) for right in rights}
        present = self.bindings()
        for binding in present - wanted:
            exactly = AclBindingFilter(
                binding.restype,
                binding.name,
                binding.resource_pattern_type,
                binding.principal,
                "*",
                binding.operation,
                binding.permission_type,
            )
            self.admin.delete_acls([exactly])[exactly].result(30)
        for future in self.admin.create_acls(list(wanted - present)).values() if wanted - present else ():
            future.result(30)
        self._wait_for(self._own, wanted)
        if wanted != present:
            self.pass_a_marker()

    def bindings(self) -> set[AclBinding]:
        """All ACLs of the user."""
        return set(self.admin.describe_acls(self._own).result(30))

    @property
    def _own(self) -> AclBindingFilter:
        kind, pattern = ResourceType.ANY, ResourcePatternType.ANY
        return AclBindingFilter(kind, None, pattern, self.principal, None, AclOperation.ANY, AclPermissionType.ANY)

    def pass_a_marker(self) -> None:
        """Broker and controller know everything that was changed before this: they learn all changes in the same order."""
        marker = f"User:{secrets.token_hex(8)}"
        kind = (ResourceType.TOPIC, "marker", ResourcePatternType.LITERAL, marker, "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
        self.admin.create_acls([AclBinding(*kind)])[AclBinding(*kind)].result(30)
        self._wait_for(AclBindingFilter(*kind), {AclBinding(*kind)})
        self.admin.delete_acls([AclBindingFilter(*kind)])[AclBindingFilter(*kind)].result(30)

    def _wait_for(self, which: AclBindingFilter, wanted: set[AclBinding]) -> None:
        until(lambda: set(self.admin.describe_acls(which).result(30)) == wanted, lambda: "the ACLs never came")

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self.admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result(30)

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(30)

    def configure(self, topic: str, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def remove_topic(self, name: str) -> None:
        """Gone when this returns, if it ever was there."""
        if name in self.topics():
            delete_topics(self.cluster.client_settings(), name)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=10).topics)

    def produce(self, topic: str, values: Iterable[str]) -> None:
        producer = Producer({**self.cluster.client_settings(), "linger.ms": 5, "log_level": 2})
        for value in values:
            producer.produce(topic, value=value.encode(), partition=0)
        assert producer.flush(30) == 0

    def commit(self, group: str, topic: str, offset: int) -> None:
        commit_offsets(self.cluster.client_settings(), group, {(topic, 0): offset})


@dataclass
class Stage:
    """A flow of a config file with its topic and group at the source; `produced` is how many records the topic has."""

    path: Path
    source: Side
    target: Side
    topic: str
    group: str
    produced: int = 0

    @property
    def flow(self) -> Flow:
        return load_config(self.path).flows[0]

    def fill(self) -> None:
        """Something new for every errand. Of the topic's partitions the first one has all records."""
        if self.topic not in self.source.topics():
            self.source.create_topic(self.topic, config={"retention.ms": "86400000"})
        self.source.produce(self.topic, map(str, range(self.produced, self.produced + RECORDS)))
        self.produced += RECORDS
        self.source.commit(self.group, self.topic, self.produced - 5)

    def empty(self) -> None:
        """As if Ferry had never run; what producers wrote at the source stays."""
        for side, kept in ((self.target, set()), (self.source, {self.topic})):
            side.pass_a_marker()  # a topic that was created just now is listed then
            for name in side.topics() - kept:
                if not name.startswith("__"):
                    side.remove_topic(name)

    def errands(self) -> dict[str, Callable[[], Iterable[Complaint]]]:
        """Everything that Ferry does for a flow, in an order in which each finds something to do."""
        flow, name = self.flow, f"{secrets.token_hex(3)}"
        syncs = {f"sync {sync.value}": partial(self._sync, flow, sync) for sync in SyncName}
        errands: dict[str, Callable[[], Iterable[Complaint]]] = {
            "plan": lambda: self._plan(flow),
            "run": lambda: self._run(flow, RunRequest(flow.name, f"run-{name}")),
            **syncs,
            # What stands in their topics by now is read first.
            **{f"{errand}, again": syncs[errand] for errand in ("sync offset-syncs", "sync checkpoints")},
            "more partitions": lambda: self._widen(flow, f"wider-{name}"),
            "backfill": lambda: self._backfill(flow, f"backfill-{name}"),
            "seed": lambda: self._seed(flow, f"seed-{name}"),
            "status": lambda: _looked(lambda: flow_status(flow)),
            "ledger": lambda: _looked(lambda: covered_ranges(read_receipts(flow))),
            "verify": lambda: self._verify(flow, f"verify-{name}"),
            "compaction": lambda: _looked(lambda: compact_ledger(flow)),
        }
        if flow.mirroring.emit_checkpoints_enabled:
            errands["translate"] = lambda: self._translate(flow)
            errands["explain"] = lambda: _looked(lambda: explain_group(flow, self.group))
            errands["client"] = lambda: self._client(flow)
        return errands

    def _plan(self, flow: Flow) -> list[Complaint]:
        planned = plan_run(flow, RunRequest(flow.name, "plan"))
        return [Complaint("plan", entry.error, entry.problem, ExitCode.PARTLY_FAILED) for entry in planned.failed]

    def _run(self, flow: Flow, request: RunRequest) -> list[Complaint]:
        return [
            Complaint("run", entry.error, entry.problem, report.exit_code)
            for report in [whole_run(flow, request)]
            for entry in report.failed
        ]

    def _sync(self, flow: Flow, sync: SyncName) -> list[Complaint]:
        if sync is SyncName.CONFIGS:
            self.source.configure(self.topic, "retention.ms", str(86_400_000 + self.produced))
        outcome = carry_out(flow, sync, on_request=True, unless_disabled=True)
        errand = f"sync {sync.value}"
        told = [Complaint(errand, entry.error, entry.problem, outcome.exit_code) for entry in outcome.failed]
        said = [*(f"{entry.what}: {entry.reason}" for entry in outcome.skipped), *outcome.notices]
        return [*told, *(Complaint(errand, "said", text, outcome.exit_code) for text in said if any(word in text for word in WORDS))]

    def _widen(self, flow: Flow, run_id: str) -> list[Complaint]:
        self.source.grow(self.topic, len(self.source.admin.list_topics(self.topic, timeout=10).topics[self.topic].partitions) + 1)
        return self._run(flow, RunRequest(flow.name, run_id))

    def _backfill(self, flow: Flow, run_id: str) -> list[Complaint]:
        now = datetime.now(UTC)
        return self._run(flow, RunRequest(flow.name, run_id, since=now - timedelta(hours=1), until=now, backfill=True))

    def _seed(self, flow: Flow, run_id: str) -> list[Complaint]:
        outcome = seed(flow, RunRequest(flow.name, run_id), GivenPositions("file", {(self.topic, 0): self.produced}))
        return [Complaint("seed", entry.error, entry.problem, outcome.exit_code) for entry in outcome.failed]

    def _verify(self, flow: Flow, run_id: str) -> list[Complaint]:
        report = verify(flow, VerifyRequest(flow.name, run_id), verify_inline, lambda _: None)
        told = [Complaint("verify", entry.error, entry.problem, ExitCode.PARTLY_FAILED) for entry in report.failed]
        missing = [entry for entry in report.not_covered if any(word in str(entry) for word in WORDS)]
        return [*told, *(Complaint("verify", "not covered", str(entry), ExitCode.PARTLY_FAILED) for entry in missing)]

    def _translate(self, flow: Flow) -> list[Complaint]:
        active, back = translated_groups(flow), translated_groups(flow, reverse=True)
        left_out = [*active.left_out, *back.left_out]
        told = [Complaint("translate", entry.error, entry.reason, ExitCode.PARTLY_FAILED) for entry in left_out if entry.error]
        assert told or self.group in active.groups
        return told

    def _client(self, flow: Flow) -> list[Complaint]:
        config = load_config(self.path)

        def ask() -> object:
            remote_cluster.replication_hops(config, flow.target.alias, flow.source.alias)
            return remote_cluster.translate_offsets(config, flow.target.alias, flow.source.alias, self.group, 10.0)

        return _looked(ask)


def whole_run(flow: Flow, request: RunRequest) -> RunReport:
    """One run in this process, without its syncs."""
    return copied(flow, request, lambda run: run.copy(InlineLaneRunner(), lambda _: None))


def done(errand: str, act: Callable[[], Iterable[Complaint]]) -> list[Complaint]:
    """What an errand complained of, be it that it could do nothing at all."""
    try:
        return list(act())
    except FerryError as problem:
        return [Complaint(errand, type(problem).__name__, str(problem), worst_exit_code([problem.exit_code]))]


def _looked(look: Callable[[], object]) -> list[Complaint]:
    look()
    return []


def _binding(right: Right, principal: str) -> AclBinding:
    operation = _OPERATIONS.get(right.operation.value) or AclOperation[right.operation.value.upper()]
    pattern = ResourcePatternType.PREFIXED if right.resource.pattern is AclPattern.PREFIXED else ResourcePatternType.LITERAL
    return AclBinding(_KINDS[right.resource.kind], right.resource.name, pattern, principal, "*", operation, AclPermissionType.ALLOW)
