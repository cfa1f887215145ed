"""Findings about a cluster, from facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.clusters.admin.api_versions import (
    FETCH_BY_TOPIC_ID,
    NO_IDS,
    REMOTE_TOPIC_IDS,
    SOURCE_NEEDS,
    SOURCE_WISHES,
    TARGET_NEEDS,
    TARGET_WISHES,
    TOPIC_IDS,
    Capabilities,
    Clock,
)
from ferry.doctor.cluster_checks import cluster_findings, release
from ferry.doctor.cluster_facts import ClusterFacts
from ferry.doctor.finding import Verdict, exit_code
from ferry.errors import AuthenticationFailed, ExitCode

pytestmark = pytest.mark.unit

NEWEST = {1: 18, 3: 13, 9: 10, 22: 6, 61: 0, 66: 2}
WITHOUT_2_8 = {1: 12, 3: 9, 9: 7, 22: 4}
FEATURES = {"metadata.version": 30, "transaction.version": 2}
CONFIGS = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.max.timeout.ms": "900000",
}
CAN = Capabilities(NEWEST, FEATURES, Clock(12, 3))
GOOD = ClusterFacts("B", "b1:9092, b2:9092", "ferry (SASL_SSL, PLAIN)", None, "id", 3, 3, CAN, CONFIGS)


def can(**changes: object) -> ClusterFacts:
    return replace(GOOD, capabilities=replace(CAN, **changes))  # type: ignore[arg-type]


def configured(**changes: str) -> ClusterFacts:
    return replace(GOOD, configs=CONFIGS | {name.replace("_", "."): value for name, value in changes.items()})


def test_a_good_cluster() -> None:
    findings = list(cluster_findings(GOOD, source=True, target=True))
    assert {entry.verdict for entry in findings} == {Verdict.OK}
    assert "3 brokers" in findings[0].found
    assert "ferry (SASL_SSL, PLAIN)" in findings[0].found


def test_without_transactions_a_target_needs_none() -> None:
    poor = replace(configured(transaction_max_timeout_ms="5000"), capabilities=replace(CAN, newest={**NEWEST, 22: 0}, features={}))
    assert Verdict.FAILURE in {entry.verdict for entry in cluster_findings(poor, source=False, target=True)}
    findings = list(cluster_findings(poor, source=False, target=True, transactions=False))
    assert {entry.verdict for entry in findings} == {Verdict.OK}
    assert "may be copied twice" in next(entry.found for entry in findings if entry.check == "exactly-once")


@pytest.mark.parametrize(
    ("facts", "check", "verdict", "told", "fix"),
    [
        (can(features={"metadata.version": 21}), "version", "ok", "Kafka 3.9", ""),
        (can(features={"metadata.version": 99}), "version", "ok", "Kafka 4.4", ""),
        (can(features={}), "version", "ok", "the cluster does not tell it", ""),
        (
            replace(can(features={}), configs={**CONFIGS, "inter.broker.protocol.version": "2.8-IV1"}),
            "version",
            "ok",
            "Kafka 2.8-IV1, with ZooKeeper",
            "",
        ),
        (
            can(newest={**WITHOUT_2_8, 3: 9}),
            "release",
            "warning",
            "topic ids (KIP-516); cluster B is older than Kafka 2.8",
            "to 2.8 or newer",
        ),
        (
            can(newest={**NEWEST, 3: 9}),
            "release",
            "warning",
            "does not offer Metadata in version 10, as Kafka 2.8",
            "do not delete remote topics",
        ),
        (can(clock=Clock(-4_000, 10)), "clock", "ok", "4.000 s behind", ""),
        (can(clock=Clock(-7_000, 10)), "clock", "warning", "7.000 s behind", "NTP"),
        (can(clock=Clock(6_000, 2_000)), "clock", "ok", "ahead of", ""),
        (can(clock=Clock(4_000_000, 10)), "clock", "failure", "ahead of", "NTP"),
        (can(newest={**NEWEST, 55: 2}, clock="it is shy"), "clock", "warning", "it is shy", "grant Describe on the cluster"),
        (can(newest={**NEWEST, 55: 0}, clock="only KRaft tells"), "clock", "ok", "keep NTP running", ""),
        (can(newest={22: 2, 9: 6}), "release", "failure", "KIP-360", "2.5"),
        (can(newest={**NEWEST, 9: 6}), "release", "failure", "KIP-447", "provider"),
        (
            can(features={"metadata.version": 25}),
            "exactly-once",
            "warning",
            "hanging",
            "kafka-features.sh --bootstrap-server b1:9092,b2:9092 upgrade --feature transaction.version=2",
        ),
        (can(features={"metadata.version": 21}), "exactly-once", "ok", "before Kafka 4.0", ""),
        (can(newest={key: version for key, version in NEWEST.items() if key != 61}), "release", "warning", "KIP-664", "provider"),
        (replace(GOOD, brokers=2), "transaction log", "failure", "replication.factor=3 with 2 brokers", "start 1 more"),
        (
            replace(configured(transaction_state_log_replication_factor="1"), brokers=1),
            "transaction log",
            "failure",
            "min.isr=2 with 1 broker:",
            "start 1 more",
        ),
        (
            configured(transaction_state_log_replication_factor="1"),
            "transaction log",
            "warning",
            "while that broker is down",
            "set it to 3",
        ),
        (configured(transaction_max_timeout_ms="30000"), "transaction time", "failure", "30000", "transaction.max.timeout.ms=60000"),
        (replace(GOOD, configs={}, no_configs="refused"), "broker configs", "warning", "refused", "grant DescribeConfigs"),
    ],
)
def test_each_check(facts: ClusterFacts, check: str, verdict: str, told: str, fix: str) -> None:
    found = next(entry for entry in cluster_findings(facts, source=False, target=True) if entry.check == check)
    assert (found.verdict, told in found.found, fix in found.fix) == (verdict, True, True), found
    assert (found.fix == "") == (found.verdict is Verdict.OK)


def test_a_service_is_named_and_its_versions_are_no_age() -> None:
    redpanda = replace(can(newest={1: 11, 3: 8, 9: 7, 22: 3, 61: 0, 66: 0}, features={}), cluster_id="redpanda.3f2", configs={})
    findings = list(cluster_findings(redpanda, source=True, target=True))
    assert next(entry.found for entry in findings if entry.check == "service").startswith("Redpanda; Ferry knows its limits as of 20")
    assert next(entry.found for entry in findings if entry.check == "version").startswith("the cluster does not tell it")
    released = [entry.found for entry in findings if entry.check == "release"]
    assert released
    assert all("; cluster B is Redpanda, which does not offer " in found for found in released)
    assert not any("notices it a moment later" in found for found in released), "without topic ids it never notices"


def test_a_cluster_may_have_less_than_its_brokers_offer() -> None:
    behind = replace(can(features={}), without_ids=True, configs={**CONFIGS, "inter.broker.protocol.version": "2.7-IV2"})
    found = [(entry.found, entry.fix) for entry in cluster_findings(behind, source=True, target=True) if entry.check == "release"]
    assert found == [(f"{wish.without}; cluster B {NO_IDS}", wish.heed) for wish in (TOPIC_IDS, REMOTE_TOPIC_IDS)]


def test_what_an_upgrade_would_meet() -> None:
    small = replace(GOOD, small_segments=tuple(f"t{number}" for number in range(7)))
    streams = can(features={**FEATURES, "metadata.version": 29, "streams.version": 1})
    found = [
        [(entry.verdict, entry.found) for entry in cluster_findings(facts, source=not target, target=target) if entry.check == "upgrade"]
        for facts, target in ((small, False), (streams, True), (streams, False), (can(features=FEATURES), True))
    ]
    [(verdict, text)], [(_, told)], *none = found
    assert verdict is Verdict.WARNING
    assert text.startswith("segment.bytes is below 1,048,576 on t0, t1, t2, t3, t4 and 2 more: brokers of Kafka 4.1 or newer do not start")
    assert "KAFKA-20254" in told
    assert none == [[], []]


def test_a_source_needs_no_transactions() -> None:
    no_transactions = can(newest={key: version for key, version in NEWEST.items() if key not in {9, 22}})
    assert {entry.check for entry in cluster_findings(no_transactions, source=True, target=False)} == {
        "reachable",
        "service",
        "version",
        "clock",
    }


def test_doctor_and_run_go_by_the_same_list() -> None:
    nothing = list(cluster_findings(can(newest={}), source=True, target=True))
    found = [entry.found for entry in nothing if entry.check == "release"]
    assert found == [
        f"{entry.without}; cluster B is older than Kafka {entry.since}"
        for entry in (*SOURCE_NEEDS, *TARGET_NEEDS, *SOURCE_WISHES, *TARGET_WISHES)
        if entry is not FETCH_BY_TOPIC_ID
    ]
    assert exit_code(nothing) is ExitCode.PARTLY_FAILED


def test_a_cluster_that_refuses_the_login_is_told_of_once() -> None:
    (found,) = cluster_findings(replace(GOOD, problem=AuthenticationFailed("cluster B refuses ferry")), source=False, target=True)
    assert (found.verdict, found.found, exit_code([found])) == (Verdict.FAILURE, "cluster B refuses ferry", ExitCode.UNREACHABLE)
    assert found.fix


def test_releases() -> None:
    levels = {7: "3.3", 14: "3.6", 19: "3.7", 25: "4.0", 26: "4.1", 29: "4.2", 30: "4.3"}
    assert {level: release(can(features={"metadata.version": level})) for level in levels} == levels
