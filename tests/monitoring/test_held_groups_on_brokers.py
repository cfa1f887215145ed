"""A group that a sync may not write, on real brokers: what `ferry status` says while it has a member on the target, and after that."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer
from tests.conftest import Lab
from tests.monitoring.test_limits_on_brokers import ferry
from tests.opened import flow_status
from tests.waiting import until
from tools.kafka.groups import commit_offsets

from ferry.config import load_config
from ferry.errors import ExitCode
from ferry.monitoring.verdict import Health, verdict_of

pytestmark = pytest.mark.brokers


@pytest.mark.long
def test_a_group_is_held_up_while_it_has_a_member_on_the_target(lab: Lab) -> None:
    topic = lab.topic(lab.source)
    groups = (f"groups = {topic}-.*", "sync.group.offsets.enabled = true", "sync.group.offsets.interval.seconds = 0")
    config = lab.config(f"A->B.topics = {topic}", *groups, *lab.copy_only)
    flow = load_config(config).flows[0]
    busy, free = f"{topic}-busy", f"{topic}-free"

    def run() -> tuple[Health, list[str]]:
        done = ferry("run", str(config), "--flow", flow.name, "--master", "inline")
        assert done.returncode == ExitCode.DONE, done.stderr
        verdict = verdict_of(flow_status(flow), 0.0)
        return verdict.health, [reason.text for reason in verdict.reasons]

    lab.produce(lab.source, topic, [(0, None, b"x") for _ in range(20)])
    for group in (busy, free):
        commit_offsets(lab.source.client_settings(), group, {(topic, 0): 10})
    assert run() == (Health.HEALTHY, [])
    member = Consumer({**lab.target.client_settings(), "group.id": busy, "client.id": "forgotten", "enable.auto.commit": False})
    member.subscribe([f"{flow.source.alias}.{topic}"])
    until(lambda: member.poll(1) is not None, lambda: "the member never got a record")
    try:
        assert run() == (Health.HEALTHY, []), "on the target it is where it is on the source"
        for group in (busy, free):
            commit_offsets(lab.source.client_settings(), group, {(topic, 0): 15})
        health, (reason,) = run()
        assert health == Health.LAGGING
        why = f"group {busy}, because it has 1 member on {flow.target.alias} (client id forgotten on 127.0.0.1), and Ferry writes"
        assert reason.startswith(f"1 group not synced: {why} only groups without members; after a failover, such a group goes on at ")
    finally:
        member.close()
    assert run() == (Health.HEALTHY, [])
