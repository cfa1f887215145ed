"""Why a group is or is not synced, on real brokers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from confluent_kafka import Consumer
from tests.conftest import Lab
from tests.opened import explain_group
from tools.kafka.groups import commit_offsets
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.config import load_config
from ferry.errors import ArgumentError
from ferry.syncs import group_explanation
from ferry.syncs.translated_groups import TranslatedGroups
from ferry.translation.translated import Inexact, TranslatedPosition, Translation

pytestmark = pytest.mark.brokers

GroupMember = Callable[..., AbstractContextManager[Consumer]]


def test_a_group_is_explained(lab: Lab, group_member: GroupMember, share_group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = lab.config("A->B.sync.group.offsets.enabled = true", "A->B.groups.exclude = excluded-.*")
    flow = load_config(path).flows[0]
    topic, remote = lab.topic(lab.source, partitions=2), lab.topic(lab.target, partitions=2)
    lab.produce(lab.source, topic, [(0, b"k", b"v")] * 10)
    lab.produce(lab.target, remote, [(0, b"k", b"v")] * 8)
    group, excluded = (f"{prefix}-{secrets.token_hex(4)}" for prefix in ("g", "excluded"))
    for cluster, name, offset in ((lab.source, topic, 7), (lab.target, remote, 2)):
        commit_offsets(cluster.client_settings(), group, {(name, 0): offset})

    def translated(_: object, groups: list[str]) -> TranslatedGroups:
        positions = (
            TranslatedPosition(groups[0], topic, 0, remote, 7, Translation(5, Inexact.AHEAD)),
            TranslatedPosition(groups[0], topic, 1, remote, None, None, problem="never copied"),
        )
        return TranslatedGroups(tuple(groups), positions, ())

    monkeypatch.setattr(group_explanation, "translated_groups", translated)
    arguments = ["explain", str(path), "--flow", flow.name, "--group", group]
    answer = CliRunner().invoke(app, [*arguments, "--json"])
    found = json.loads(answer.stdout)
    assert (found["version"], found["obstacles"]) == (1, [])
    assert (found["source"]["state"], found["source"]["type"], found["target"]["members"]) == ("Empty", "classic", [])
    first, second = found["partitions"]
    assert first == {
        "topic": topic,
        "partition": 0,
        "source_offset": 7,
        "source_lag": 3,
        "remote_topic": remote,
        "translated": 5,
        "exact": False,
        "target_offset": 2,
        "target_lag": 6,
        "decision": "write",
        "reason": "not exact (ahead): records are read again",
    }
    assert (second["decision"], second["reason"], second["source_lag"], second["translated"]) == ("nothing", "never copied", None, None)
    with group_member(lab.target, group, remote, **{"client.id": "reader"}):
        shown = CliRunner().invoke(app, arguments).stdout
    assert f"not synced: it has 1 member on {flow.target.alias} (client id reader on 127.0.0.1)" in shown
    with group_member(lab.source, excluded, topic):
        obstacles = explain_group(flow, excluded).obstacles
    assert obstacles == ("the group filter leaves it out: in the property groups.exclude",)
    alias = flow.source.alias
    assert f"{alias} has no such group" in explain_group(flow, share_group).obstacles
    disabled = load_config(lab.config()).flows[0]
    assert "runs do not sync groups: sync.group.offsets.enabled=false" in explain_group(disabled, group).obstacles
    with pytest.raises(ArgumentError, match="neither"):
        explain_group(flow, f"none-{secrets.token_hex(4)}")
