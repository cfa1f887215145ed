"""Findings about a flow, from facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.clusters.admin.api_versions import Capabilities
from ferry.clusters.admin.likeness import Likeness
from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow, load_config
from ferry.doctor.cluster_facts import ClusterFacts, RightsFacts
from ferry.doctor.diagnosis import config_findings
from ferry.doctor.finding import Finding, Verdict, exit_code
from ferry.doctor.flow_checks import flow_findings, memory_finding
from ferry.doctor.flow_facts import FlowFacts
from ferry.doctor.machine import MachineFacts
from ferry.errors import ExitCode, PartitionsFailed
from ferry.ledger.run_report import LossReport, PartitionFailure, Skipped
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.runs import empty_run
from ferry.monitoring.verdict import verdict_of
from ferry.pipeline.few_replicas import FewReplicas
from ferry.pipeline.wrong_topics import WrongTopic
from ferry.syncs.config_differences import ConfigDifference

pytestmark = pytest.mark.unit

FlowOf = Callable[..., Flow]
GIBIBYTE = 1 << 30
MACHINE = MachineFacts((3, 11, 2), {}, cores=2, memory=16 * GIBIBYTE, memory_available=12 * GIBIBYTE)
CONFIGS = {
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "transactional.id.expiration.ms": "604800000",
    "offsets.retention.minutes": "10080",
}
OPEN = RightsFacts(False, None, None)
A = ClusterFacts("A", "a:9092", "ANONYMOUS", None, "id-a", 3, 3, Capabilities({}), CONFIGS)
B = replace(A, alias="B", bootstrap="b:9092", cluster_id="id-b")
FACTS = FlowFacts(A, B, OPEN, OPEN, FlowHealth("A->B", ()), None, 2)
DAY = 86_400.0
SHORT = ConfigDifference("orders", "A.orders", "retention.ms", "2", "1", "keeps records only for 1 s", "set it")
STAMPED = replace(SHORT, name="message.timestamp.type", there="LogAppendTime", remedy="set CreateTime", refused=True)


@pytest.fixture
def flow_of(tmp_path: Path) -> FlowOf:
    def load(*lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        servers = ["clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092", "A->B.enabled = true"]
        path.write_text("\n".join([*servers, *(lines or ["A->B.topics = orders, pay.*"])]) + "\n")
        return load_config(path).flows[0]

    return load


def status(headroom: float | None) -> FlowHealth:
    return FlowHealth("A->B", (PartitionStatus("orders", 1, "A.orders", 5, 9, 4, 400, 20.0, headroom, None, 0),))


def bad(flow: Flow, facts: FlowFacts, pause: float | None = None) -> list[Finding]:
    return [entry for entry in flow_findings(flow, facts, MACHINE, pause) if entry.verdict is not Verdict.OK]


def test_a_good_flow(flow_of: FlowOf) -> None:
    good = status(30 * DAY)
    assert bad(flow_of(), replace(FACTS, status=good), pause=3_600.0) == []
    over = {**empty_run("r"), "state": "failed"}
    assert bad(flow_of(), replace(FACTS, status=replace(good, last_run=over, ran=False)), pause=3_600.0) == [], "what failed may be over"


def test_doctor_and_status_say_alike_what_stands_in_the_way_of_the_next_run(flow_of: FlowOf) -> None:
    lost, stopped = LossReport("orders", 1, 0, 4, "expired"), PartitionFailure("orders", 0, "TargetRecreated", "deleted")
    held = LastStableLag("orders", 0, "B", "b:9092", TopicPartition("A.orders", 0), 5, 8, 1_200_000, overdue=True)
    ill = replace(status(30 * DAY), losses=(lost,), stopped=(stopped,), last_stable_lags=(held, replace(held, overdue=False)))
    found = bad(flow_of(), replace(FACTS, status=ill), pause=3_600.0)
    assert [(entry.found, entry.fix) for entry in found] == [(reason.text, reason.next_step) for reason in verdict_of(ill, 0.0).reasons]
    assert {(entry.check, entry.verdict) for entry in found} == {("losses", Verdict.FAILURE), ("partitions", Verdict.FAILURE)}


def test_topics_that_are_left_out(flow_of: FlowOf) -> None:
    skipped = Skipped("paymnts", "A has no such topic", True), Skipped("a", "why", False), Skipped("topic hidden", "why")
    named, others = "topic paymnts is not copied: A has no such topic", "left out: 1 topic of the source: a (why)"
    left = replace(FACTS, status=replace(status(30 * DAY), left_out=skipped))
    (found,) = bad(flow_of(), left, pause=3_600.0)
    assert (found.check, found.verdict, found.found) == ("topics", Verdict.WARNING, named)
    assert others in {entry.found for entry in flow_findings(flow_of(), left, MACHINE, 3_600.0)}
    refused = PartitionFailure("A.x", -1, "ConfigError", "Ferry never copies it, though topics names it: cycle")
    (found,) = bad(flow_of(), replace(FACTS, selected=0, status=replace(status(30 * DAY), stopped=(refused,))), pause=3_600.0)
    assert (found.verdict, refused.problem in found.found) == (Verdict.FAILURE, True), "no advice to grant rights"


def test_one_cluster_under_two_names(flow_of: FlowOf) -> None:
    (found,) = bad(flow_of(), replace(FACTS, alike=Likeness(True, "A and B are the same cluster id-a")))
    assert exit_code([found]) == ExitCode.BAD_INPUT
    assert (found.check, found.fix) == ("two clusters", "correct bootstrap.servers")


def test_two_clusters_with_one_id(flow_of: FlowOf) -> None:
    facts = replace(
        FACTS, status=status(30 * DAY), alike=Likeness(False, "A and B both have cluster id x, and are two clusters", "nothing")
    )
    (found,) = bad(flow_of(), facts, pause=3_600.0)
    assert (found.check, found.verdict, found.found) == ("two clusters", Verdict.WARNING, facts.alike.why if facts.alike else "")


@pytest.mark.parametrize(
    ("facts", "pause", "check", "verdict", "told", "fix"),
    [
        (replace(FACTS, selected=0), None, "topics", "warning", "orders, pay.*", "A->B.topics"),
        (
            replace(FACTS, target=replace(B, configs={**CONFIGS, "min.insync.replicas": "4"})),
            None,
            "replicas",
            "failure",
            "min.insync.replicas=4",
            "replication.factor=4",
        ),
        (
            replace(FACTS, target=replace(B, brokers=1, known_brokers=1, configs={**CONFIGS, "default.replication.factor": "3"})),
            None,
            "replicas",
            "failure",
            "replication.factor wants 2 replicas, and B has 1 broker",
            "set replication.factor=1",
        ),
        (
            replace(FACTS, few_replicas=(FewReplicas("A.orders", "replication.factor", 1, 2, ((2,), (3,))),), brokers=frozenset({1, 2, 3})),
            None,
            "replicas",
            "warning",
            "fewer replicas than replication.factor wants (2): A.orders (1)",
            '{"topic":"A.orders","partition":0,"replicas":[2,1]},{"topic":"A.orders","partition":1,"replicas":[3,2]}',
        ),
        (
            replace(FACTS, wrong_topics=(WrongTopic("topic l has cleanup.policy=delete", "kafka-configs.sh", stops=True),)),
            None,
            "internal topics",
            "failure",
            "topic l has cleanup.policy=delete",
            "kafka-configs.sh",
        ),
        (
            replace(FACTS, wrong_topics=(WrongTopic("topic s has 3 partitions", "nothing is lost"),)),
            None,
            "internal topics",
            "warning",
            "topic s has 3 partitions",
            "nothing is lost",
        ),
        (replace(FACTS, differences=(SHORT,)), None, "topic configs", "warning", "retention.ms=1 of A.orders", "set it"),
        (replace(FACTS, differences=(SHORT, STAMPED)), None, "topic configs", "failure", "type=LogAppendTime of A.orders", "CreateTime"),
        (FACTS, 8 * DAY, "expiration", "warning", "8 days between runs", "transactional.id.expiration.ms"),
        (replace(FACTS, status=status(100.0)), 3_600.0, "headroom", "failure", "orders-1", "raise retention.ms of orders"),
        (replace(FACTS, status=status(100.0)), None, "headroom", "warning", "100 s", "raise retention.ms of orders"),
        (replace(FACTS, status=None, problem=PartitionsFailed("it broke")), None, "status", "failure", "it broke", " "),
    ],
)
def test_each_check(flow_of: FlowOf, facts: FlowFacts, pause: float | None, check: str, verdict: str, told: str, fix: str) -> None:
    found = next(entry for entry in bad(flow_of(), facts, pause) if entry.check == check)
    assert (found.verdict, told in found.found, fix in found.fix) == (verdict, True, True), found


def test_headroom_that_could_not_be_read_is_a_warning(flow_of: FlowOf) -> None:
    unread = replace(status(None).partitions[0], partition=7, lag_seconds=-1.0)
    (found,) = bad(flow_of(), replace(FACTS, status=replace(status(None), partitions=(unread,))))
    assert (found.check, found.verdict, "for 1 partition," in found.found) == ("headroom", Verdict.WARNING, True)
    both = replace(status(100.0), partitions=(unread, *status(100.0).partitions))
    found, other = bad(flow_of(), replace(FACTS, status=both), 3_600.0)
    assert ("orders-7" in found.found, other.verdict) == (True, Verdict.FAILURE), "what is known is told too"


def test_missing_rights_come_with_the_command_that_grants_them(flow_of: FlowOf) -> None:
    nobody = RightsFacts(True, frozenset(), frozenset())
    found = bad(flow_of("A->B.topics = orders"), replace(FACTS, source_rights=nobody))
    assert {entry.check for entry in found} == {"rights at the source"}
    command = next(entry.fix for entry in found if "topic orders" in entry.found)
    assert command.startswith("kafka-acls.sh --bootstrap-server a:9092 --add --allow-principal User:ANONYMOUS --operation ")
    assert command.endswith("--topic orders")
    assert exit_code(found) == ExitCode.PARTLY_FAILED


def test_rights_that_could_not_be_checked_are_a_warning(flow_of: FlowOf) -> None:
    (found,) = bad(flow_of(), replace(FACTS, target_rights=RightsFacts(True, None, frozenset({"DESCRIBE_CONFIGS", "ALTER"}))))
    assert (found.verdict, "could not be checked" in found.found, "ferry acls" in found.fix) == (Verdict.WARNING, True, True)


def test_what_a_service_decides_by_its_own_policies_is_not_called_granted(flow_of: FlowOf) -> None:
    """Whatever its answers about ACLs are."""
    azure = replace(B, bootstrap="shop.servicebus.windows.net:9093")
    for rights in (OPEN, RightsFacts(True, frozenset(), frozenset())):
        found = [entry for entry in bad(flow_of(), replace(FACTS, target=azure, target_rights=rights)) if entry.check.startswith("rights")]
        assert [(entry.verdict, "not checked" in entry.found, "ferry acls" in entry.fix) for entry in found] == [
            (Verdict.WARNING, True, True)
        ]


def test_where_a_service_has_its_own_number_of_replicas_no_other_is_told(flow_of: FlowOf) -> None:
    confluent = replace(B, cluster_id="lkc-1", brokers=1, known_brokers=1, configs={**CONFIGS, "min.insync.replicas": "2"})
    found = next(entry for entry in flow_findings(flow_of(), replace(FACTS, target=confluent), MACHINE, None) if entry.check == "replicas")
    assert found.verdict is Verdict.OK
    assert found.found.startswith("new topics get the brokers' default of replicas, because Confluent Cloud refuses ")


def test_memory(flow_of: FlowOf) -> None:
    flow = flow_of("A->B.topics = orders", "tasks.max = 4", "ferry.memory.mb = 1000")
    small = replace(MACHINE, memory=4 * GIBIBYTE, memory_available=3 * GIBIBYTE)
    assert memory_finding("x", flow, MACHINE, 9).verdict is Verdict.OK
    assert memory_finding("x", flow, replace(MACHINE, memory_available=4 * GIBIBYTE), 9).verdict is Verdict.WARNING
    found = memory_finding("x", flow, small, 9)
    assert (found.verdict, found.fix) == (Verdict.FAILURE, "set A->B.tasks.max=2, or lower A->B.ferry.memory.mb")
    assert memory_finding("x", flow_of("A->B.topics = x", "tasks.max = 100", "ferry.lanes = 2"), small, 9).verdict is Verdict.OK


@pytest.mark.parametrize(("partitions", "tasks"), [(8_000, 8), (11_001, 12), (99_000, 16)])
def test_memory_of_a_wide_flow_is_that_of_its_lanes(flow_of: FlowOf, partitions: int, tasks: int) -> None:
    found = memory_finding("x", flow_of("A->B.topics = x"), replace(MACHINE, cores=16), partitions)
    assert found.found.startswith(f"{tasks} tasks may take ")


def test_warnings_of_the_file_are_findings(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    text = ["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", "A->B.enabled = true", "A->B.topics = x"]
    path.write_text("\n".join([*text, "A.sasl.mechanism = PLAIN"]) + "\n")
    loaded = load_config(path)
    good, *others = config_findings(loaded, loaded.flows)
    assert (good.verdict, len(others), others[0].verdict) == (Verdict.OK, 1, Verdict.WARNING)
    assert "A.sasl.mechanism" in others[0].found
