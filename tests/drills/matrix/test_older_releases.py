"""Releases before the matrix: what they cannot do is said, and what would break exactly-once is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.drills.matrix import source_data
from tests.drills.matrix.pair import Pair
from tests.drills.matrix.source_data import AGAIN, HISTORY
from tests.drills.matrix.stage import OLD_PROTOCOL, Stage
from tools.kafka import compare_topics, read_all
from tools.kafka.releases import NEWEST

from ferry.clusters.admin.api_versions import NO_IDS, REMOTE_TOPIC_IDS, SOURCE_WISHES, TARGET_WISHES, TOPIC_IDS

pytestmark = [pytest.mark.matrix, pytest.mark.brokers]

# The last one without topic ids, and the last one whose InitProducerId takes no producer id.
WITHOUT_TOPIC_IDS, WITHOUT_FENCING = "2.7.2", "2.4.1"
BAD_INPUT = 2


def test_without_topic_ids_a_recreated_topic_is_not_recognised_and_that_is_said(stage: Stage, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, WITHOUT_TOPIC_IDS, NEWEST, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name)
    topic, remote = pair.again()
    source_data.fill_alone(pair.source, topic, 50)
    said = {entry.without for entry in SOURCE_WISHES if entry.since in {"2.8", "3.0"}}
    assert {entry["reason"] for entry in pair.ferry("plan")["skipped"]} >= said
    report = pair.ferry("run", "--master", "inline")
    assert {entry["reason"] for entry in report["skipped"]} >= said
    assert {entry["reason"] for entry in pair.ferry("status")["flows"][0]["lacking"]} == said
    assert compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics()).equal
    source_data.recreate(pair.source, topic)
    source_data.fill_alone(pair.source, topic, 80)
    pair.ferry("run", "--master", "inline")
    # What it takes for the rest of the old topic: the documentation says so.
    assert len(read_all(pair.target.bootstrap, remote)[0]) == 80


def test_a_target_without_topic_ids(stage: Stage, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, NEWEST, WITHOUT_TOPIC_IDS, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name)
    report = pair.ferry("run", "--master", "inline")
    assert {entry["reason"] for entry in report["skipped"]} >= {entry.without for entry in TARGET_WISHES}
    source_data.fill(pair.source, pair.name)
    pair.ferry("run", "--master", "inline")
    assert compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics()).equal


def test_brokers_newer_than_the_protocol_between_them(stage: Stage, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, OLD_PROTOCOL, OLD_PROTOCOL, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name)
    report = pair.ferry("run", "--master", "inline")
    assert compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics()).equal
    said = {entry["reason"]: entry["what"] for entry in report["skipped"]}
    assert {TOPIC_IDS.without, REMOTE_TOPIC_IDS.without} <= said.keys()
    assert {said[wish.without] for wish in (TOPIC_IDS, REMOTE_TOPIC_IDS)} == {f"cluster {alias} {NO_IDS}" for alias in (pair.alias, "B")}
    assert {entry["reason"] for entry in pair.ferry("status")["flows"][0]["lacking"]} == {TOPIC_IDS.without, REMOTE_TOPIC_IDS.without}
    warned = [entry["found"] for entry in pair.diagnosed() if entry["verdict"] == "warning" and entry["check"] == "release"]
    assert any(TOPIC_IDS.without in found for found in warned), warned


def test_a_target_that_cannot_fence_is_refused(stage: Stage, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, NEWEST, WITHOUT_FENCING, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill_alone(pair.source, pair.again()[0], 10)
    for command in ("plan", "status", "run"):
        problem = pair.refused(command, code=BAD_INPUT)
        assert "BrokerTooOld: cluster B" in problem
        assert "is older than Kafka 2.5" in problem
    assert not pair.remote_names()


def test_it_can_be_a_source(stage: Stage, tmp_path: Path) -> None:
    pair = Pair.of_releases(stage, WITHOUT_FENCING, NEWEST, tmp_path)
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name)
    source_data.fill_alone(pair.source, f"{pair.name}-{HISTORY}", 10)
    pair.ferry("run", "--master", "inline")
    assert compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics()).equal
    assert pair.ferry("verify")["equal"]
    assert f"{pair.name}-{AGAIN}" in pair.again()
