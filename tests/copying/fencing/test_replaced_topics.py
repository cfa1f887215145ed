"""Topics that are deleted, or made anew, under a running copy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import Lab
from tests.copying.fencing.scripted import at_commit, replace_topic
from tools.kafka import read_all

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers

RunFlow = Callable[..., RunReport]


def test_a_remote_topic_replaced_under_the_last_commit_is_named(
    topic: str, lab: Lab, fill: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.lanes = 1")
    fill(900)
    remote = f"{flow.source.alias}.{topic}"
    at_commit(monkeypatch, 1, lambda: replace_topic(lab.target, remote))
    for _ in range(2):  # the run itself, and the next one
        report = lab.run(flow)
        assert report.exit_code is ExitCode.PARTLY_FAILED
        assert [failure.error for failure in report.failed] == ["TargetRecreated"] * 3
    assert read_all(lab.target.bootstrap, remote) == [[], [], []]


def test_a_remote_topic_replaced_under_a_run_gets_no_records(
    flow: Flow, topic: str, fill: Callable[..., None], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = lab.topic(lab.source, partitions=3, name=f"{topic}-other")
    fill(9_000)
    fill(300, name=other)
    remote = f"{flow.source.alias}.{topic}"
    at_commit(monkeypatch, 2, lambda: replace_topic(lab.target, remote))
    report = lab.run(flow)
    assert report.exit_code is ExitCode.PARTLY_FAILED
    assert {failure.error for failure in report.failed} == {"TargetRecreated"}
    assert {failure.topic for failure in report.failed} == {topic}
    assert read_all(lab.target.bootstrap, remote) == [[], [], []]
    assert [len(side) for side in read_all(lab.target.bootstrap, f"{flow.source.alias}.{other}")] == [100, 100, 100]
    assert {failure.error for failure in lab.run(flow).failed} == {"TargetRecreated"}


@pytest.mark.parametrize(("again", "error"), [(True, "SourceRecreated"), (False, "SourceMissing")])
def test_a_source_topic_replaced_under_a_run_is_not_mixed(
    again: bool, error: str, flow: Flow, topic: str, fill: Callable[..., None], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(60_000)
    wanted = read_all(lab.source.bootstrap, topic)

    def strike() -> None:
        replace_topic(lab.source, topic, again=again)
        if again:
            fill(9_000)

    at_commit(monkeypatch, 2, strike)
    report = lab.run(flow)
    assert {failure.error for failure in report.failed} == {error}
    for number, copies in enumerate(read_all(lab.target.bootstrap, f"{flow.source.alias}.{topic}")):
        assert [copy.content for copy in copies] == [record.content for record in wanted[number][: len(copies)]]
