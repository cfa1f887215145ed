"""Topics that a flow leaves out are told in plan, report and status; those that its config names, by name. The page sums up the others."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable

import pytest
from tests.copying.test_outcomes import RunFlow, Side, equal, source, target
from tests.opened import flow_status, plan_run
from tools.kafka.topics import delete_topics

from ferry.cli.status_text import status_parts
from ferry.config import Flow
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError, ExitCode
from ferry.monitoring.verdict import Health, verdict_of
from ferry.page.flow_reading import read_overview
from ferry.page.overview import overview_from
from ferry.pipeline.tables import plan_parts, report_parts

pytestmark = pytest.mark.brokers
__all__ = ["source", "target"]

TopicFactory = Callable[..., str]
LINE = re.compile("left out: |topic .* is not copied: ")


def told_everywhere(flow: Flow, run_flow: RunFlow) -> set[str]:
    """The lines about topics that are left out; the same in each place."""
    places = [
        plan_parts(plan_run(flow, RunRequest(flow.name, "look"))),
        report_parts(run_flow(flow)),
        status_parts(flow_status(flow), every=True, now=time.time()),
    ]
    found = [{text for part in parts if LINE.match(text := str(part))} for parts in places]
    assert all(lines == found[0] for lines in found), found
    shown = overview_from(json.loads(json.dumps(read_overview(flow)))).left_out
    assert set(shown) == {line for line in found[0] if line.startswith("left out: ")}
    return found[0]


def test_a_topic_that_topics_names_is_copied_or_named(
    flow_factory: Callable[..., Flow], source: Side, target: Side, run_flow: RunFlow, topic_factory: TopicFactory
) -> None:
    plain, internal, excluded = (
        topic_factory(source.cluster, name=f"{prefix}-{secrets.token_hex(4)}") for prefix in ("plain", "__x", "left")
    )
    alias = flow_factory("A->B.topics = t").source.alias
    own, other = f"{alias}.{plain}-eu", f"{plain}-other"
    for topic in (own, other):
        source.create(topic, 1)
    for topic in (plain, own, internal):
        source.produce(topic, 10, partitions=1)
    topics = ", ".join((plain, own, internal, excluded, f"{plain}-eus"))
    flow = flow_factory(f"A->B.topics = {topics}", f"A->B.topics.exclude = {excluded}|.*never")
    refused = {failure.topic: failure for failure in plan_run(flow, RunRequest(flow.name, "look")).failed}
    assert refused.keys() == {own, internal}
    assert "cycle: its name says that it came from" in refused[own].problem
    assert "internal topic; take it out of topics" in refused[internal].problem
    report = run_flow(flow)
    assert (report.exit_code, report.records, {failure.topic for failure in report.failed}) == (ExitCode.PARTLY_FAILED, 10, {own, internal})
    assert equal(flow, source, target, plain)
    lines = told_everywhere(flow, run_flow)
    assert (
        f"topic {excluded} is not copied: in the property topics.exclude, though topics names it; correct topics or topics.exclude" in lines
    )
    assert any(
        line.startswith(
            f"topic {plain}-eus is not copied: {alias} has no such topic, though topics names it; correct topics, or create the topic; did"
        )
        for line in lines
    )
    (rest,) = (line for line in lines if line.startswith("left out: "))
    assert "(not in the property topics)" in rest
    assert own not in rest
    assert verdict_of(flow_status(flow), time.time()).health is Health.FAILING
    with pytest.raises(ArgumentError, match=rf"{own}: cycle: its name says .*; {plain}s: not at the source.*did you mean {plain}\?$"):
        plan_run(flow, RunRequest(flow.name, "look", topics=(own, f"{plain}s")))
    lines = told_everywhere(flow_factory(f"A->B.topics = {plain}, __consumer_offset"), run_flow)  # no topic of Kafka's is suggested
    told = f"topic __consumer_offset is not copied: {alias} has no such topic, though topics names it; correct topics, or create the topic"
    assert told in lines


def test_a_topic_that_drops_out_of_the_config_is_named(
    flow_factory: Callable[..., Flow], source: Side, run_flow: RunFlow, topic_factory: TopicFactory
) -> None:
    payments, kept = (topic_factory(source.cluster, name=f"{prefix}-{secrets.token_hex(4)}") for prefix in ("payments", "kept"))
    source.produce(payments, 5, partitions=1)
    both = flow_factory(f"A->B.topics = {payments}, {kept}")
    assert run_flow(both).records == 5
    assert not {line for line in told_everywhere(both, run_flow) if line.startswith("topic ")}
    wrong = payments.replace("payments", "paymnts")
    lines = told_everywhere(flow_factory(f"A->B.topics = {wrong}, {kept}"), run_flow)
    alias = both.source.alias
    assert (
        f"topic {payments} is not copied: not in the property topics (topics = {wrong}, {kept}), but it was copied before; "
        f"put it back into the property topics, and the next run goes on where the copy stopped, as far as {alias} still has the records; "
        f"or, if it is left out on purpose, name it in topics.exclude"
    ) in lines
    source.produce(payments, 7, partitions=1)
    told = verdict_of(flow_status(flow_factory(f"A->B.topics = {kept}")), time.time())
    assert f" is healthy, but 1 topic is not copied: {payments}: " in str(told)
    assert f"; {alias} has 7 records of it that no run copied; the other topics are up to date" in str(told)
    assert told.next_step.startswith(f"{payments}: put it back into the property topics, ")
    excluded = flow_factory(f"A->B.topics = {kept}", f"A->B.topics.exclude = {payments}")
    assert verdict_of(flow_status(excluded), time.time()).health is Health.HEALTHY
    assert run_flow(both).records == 7
    assert any(f"topic {wrong} is not copied" in line and line.endswith(f"did you mean {payments}?") for line in lines)


def test_a_copied_topic_that_the_source_has_no_more_is_told(
    flow_factory: Callable[..., Flow], source: Side, run_flow: RunFlow, topic_factory: TopicFactory
) -> None:
    prefix = f"going-{secrets.token_hex(4)}"
    for name in (f"{prefix}-a", f"{prefix}-b"):
        source.produce(topic_factory(source.cluster, name=name), 5, partitions=1)
    flow = flow_factory(f"A->B.topics = {prefix}.*")
    assert run_flow(flow).records == 10
    delete_topics(source.cluster.client_settings(), f"{prefix}-a")
    (line,) = (line for line in told_everywhere(flow, run_flow) if f"{prefix}-a" in line)
    assert f"{prefix}-a (copied before, and {flow.source.alias} has no such topic any more)" in line
    assert verdict_of(flow_status(flow), time.time()).health is Health.HEALTHY
