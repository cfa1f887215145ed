"""Which rights a flow needs by its settings, and the commands that an administrator pastes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import NEVER_SECONDS
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.clusters.admin.acl_binding import AclPattern, AclResource
from ferry.config import Flow, load_config
from ferry.errors import ArgumentError
from ferry.permissions.commands import checked_principal, commands
from ferry.permissions.required import required_rights, rights_on_topic
from ferry.permissions.rights import THE_CLUSTER, Operation, Resource, Right, least

pytestmark = pytest.mark.unit

FlowOf = Callable[..., Flow]
READ_ONLY = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
SMALL = ("emit.checkpoints.enabled = false", "sync.topic.acls.enabled = false", "B->A.emit.heartbeats.enabled = false")


@pytest.fixture
def flow_of(tmp_path: Path) -> FlowOf:
    def load(*lines: str) -> Flow:
        path = tmp_path / "mm2.properties"
        start = ("clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b1:9092, b2:9092", "A->B.enabled = true")
        path.write_text("\n".join((*start, *lines)) + "\n", encoding="latin-1")
        return load_config(path).flows[0]

    return load


def texts(rights: tuple[Right, ...]) -> set[str]:
    return {f"{right.operation} {right.resource}" for right in rights}


def test_a_message_names_all_rights_on_a_topic(flow_of: FlowOf) -> None:
    flow = flow_of("A->B.topics = orders, pay.*", *SMALL)
    assert rights_on_topic(flow, "A.orders") == rights_on_topic(flow, "A.payments") == "Alter, AlterConfigs, Create, Read, Write"
    assert rights_on_topic(flow, "mm2-ferry-state.A.internal") == "Create, DescribeConfigs, Read, Write"


def test_literal_topics_need_literal_rights_and_the_source_is_only_read(flow_of: FlowOf) -> None:
    needed = required_rights(flow_of("A->B.topics = orders, A.x, B.y, __z", *SMALL, "heartbeats.replication.enabled = false"))
    # What came from A itself, or from B, or is internal, is no topic of this flow.
    assert texts(needed.source) == {"Read topic orders", "DescribeConfigs topic orders"}
    assert texts(needed.target) == {
        *(f"{operation} topic A.orders" for operation in ("Create", "Write", "Read", "Alter", "AlterConfigs")),
        *(f"{operation} topic mm2-ferry-ledger.A.internal" for operation in ("Create", "Write", "Read", "DescribeConfigs")),
        *(f"{operation} topic mm2-ferry-state.A.internal" for operation in ("Create", "Write", "DescribeConfigs")),
        "Read every topic that begins with mm2-ferry-state.",
        *(f"{operation} topic mm2-ferry-runs.A.internal" for operation in ("Create", "Write", "Read")),
        *(f"{operation} topic heartbeats" for operation in ("Create", "Write")),
        *(f"{operation} topic mm2-offset-syncs.A.internal" for operation in ("Create", "Write", "Read")),
        "Read group __ferry-A",
        "Write every transactional id that begins with ferry-A->B-",
    }


@pytest.mark.parametrize(
    ("line", "side", "added", "removed"),
    [
        ("sync.topic.acls.enabled = true", "source", {"Describe the cluster"}, set()),
        ("sync.topic.acls.enabled = true", "target", {"Alter the cluster"}, set()),
        (
            "sync.topic.configs.enabled = false",
            "target",
            {"DescribeConfigs topic A.t", "DescribeConfigs topic A.heartbeats"},
            {"AlterConfigs topic A.t", "AlterConfigs topic A.heartbeats"},
        ),
        ("transaction.producer = false", "target", set(), {"Write every transactional id that begins with ferry-A->B-"}),
        ("emit.checkpoints.enabled = true", "source", {"Describe every group"}, set()),
        ("sync.group.offsets.enabled = true", "target", {"Read every group"}, {"Read group __ferry-A"}),
        ("ferry.publish.source.group = lag", "source", {"Read group lag"}, set()),
        (
            "offset-syncs.topic.location = source",
            "source",
            {f"{operation} topic mm2-offset-syncs.B.internal" for operation in ("Create", "Read", "Write")},
            set(),
        ),
        ("heartbeats.replication.enabled = false", "source", set(), {"Read topic heartbeats", "DescribeConfigs topic heartbeats"}),
        (
            "A->B.topics = .*",
            "source",
            {"Read every topic", "DescribeConfigs every topic"},
            {f"{operation} topic {name}" for operation in ("Read", "DescribeConfigs") for name in ("t", "heartbeats")},
        ),
        (
            "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "source",
            {"Read topic mm2-ferry-ledger.B.internal", "Read every topic that begins with mm2-ferry-state."},
            set(),
        ),
    ],
)
def test_a_setting_adds_its_rights_alone(flow_of: FlowOf, line: str, side: str, added: set[str], removed: set[str]) -> None:
    before = texts(getattr(required_rights(flow_of("A->B.topics = t", *SMALL)), side))
    key = line.partition(" ")[0]
    base = [text for text in SMALL if not text.startswith(f"{key} ")]
    lines = [line] if key == "A->B.topics" else ["A->B.topics = t", line]
    now = texts(getattr(required_rights(flow_of(*lines, *base)), side))
    assert (now - before, before - now) == (added, removed)


def test_only_what_was_asked_for_is_written_to_the_source(flow_of: FlowOf) -> None:
    quiet = required_rights(flow_of("A->B.topics = .*", "sync.group.offsets.enabled = true"))
    assert {right.operation for right in quiet.source} <= READ_ONLY
    assert any("B->A.emit.heartbeats.enabled=true" in note for note in quiet.notes)
    asked = required_rights(flow_of("A->B.topics = t", "B->A.emit.heartbeats.enabled = true"))
    assert {f"{operation} topic heartbeats" for operation in ("Create", "Write")} <= texts(asked.source)


def test_notes_say_where_acls_are_wider_than_the_filter(flow_of: FlowOf) -> None:
    needed = required_rights(flow_of("A->B.topics = orders-[0-9]+, plain, a.b", "A->B.groups = web-.*"))
    notes = "\n".join(needed.notes)
    assert "topics: no ACL says just this; every topic that begins with orders- is the least that covers it" in notes
    assert "groups: every group that begins with web- covers names too that groups.exclude leaves out" in notes
    assert "topics: a.b is taken for one name, though its dots match any character" in notes
    assert "plain" not in notes
    assert "Write every topic that begins with A.orders-" in texts(needed.target)


KINDS = st.sampled_from([AclResource.TOPIC, AclResource.GROUP])
RIGHTS = st.builds(
    Right,
    st.builds(Resource, KINDS, st.sampled_from(["*", "a", "ab", "b", ""]), st.sampled_from(AclPattern)),
    st.sampled_from(Operation),
    st.sampled_from([("one",), ("two",), ("one", "two")]),
)


@given(rights=st.lists(RIGHTS, max_size=8))
def test_least_rights_allow_the_same_and_none_is_redundant(rights: list[Right]) -> None:
    found = least(rights)
    for right in rights:
        covering = [other for other in found if other.covers(right)]
        assert covering
        assert set(right.needed_for) <= {feature for other in covering for feature in other.needed_for}
    for right in found:
        assert not [other for other in found if other != right and other.covers(right)]


def pasted(tmp_path: Path, lines: list[str]) -> list[list[str]]:
    """What a shell makes of the lines: the arguments of every command that it ran."""
    tools, told = tmp_path / "bin", tmp_path / "told"
    tools.mkdir(exist_ok=True)
    told.write_text("")
    tool = tools / "kafka-acls.sh"
    tool.write_text(f'#!/bin/bash\nprintf "%s\\0" "$@" END >> {told}\n')
    tool.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash"], input="\n".join(lines), capture_output=True, text=True, env={"PATH": str(tools)}, timeout=NEVER_SECONDS, check=False
    )
    assert (done.stdout, done.stderr) == ("", "")
    calls: list[list[str]] = [[]]
    for word in told.read_bytes().decode("utf-8").split("\0")[:-1]:
        if word == "END":
            calls.append([])
        else:
            calls[-1].append(word)
    return calls[:-1]


@pytest.mark.parametrize(
    "name", ["x; touch owned", "$(touch owned)", "`id`", "a'b\"c", "a\nb", "# c", "--remove", "!!", "a\\", "~", "*", "ferry-A->B-", "é"]
)
def test_hostile_names_do_not_reach_the_shell(tmp_path: Path, name: str) -> None:
    group, topic = Resource(AclResource.GROUP, name), Resource(AclResource.TOPIC, name, AclPattern.PREFIXED)
    rights = (Right(group, Operation.READ, (name,)), Right(topic, Operation.WRITE, ("b",)), Right(THE_CLUSTER, Operation.ALTER, ("c",)))
    told = list(commands("b:9092, c:9092", f"User:{name}", rights, "my admin.properties"))
    assert all("\n" not in comment and comment.startswith("# ") for comment, _ in told)
    calls = pasted(tmp_path, [part for pair in told for part in pair])
    start = ["--bootstrap-server", "b:9092,c:9092", "--command-config", "my admin.properties", "--add", "--allow-principal", f"User:{name}"]
    of = [f"--group={name}"] if name.startswith("-") else ["--group", name]
    other = [f"--topic={name}"] if name.startswith("-") else ["--topic", name]
    assert sorted(calls) == sorted(
        [
            [*start, "--operation", "Read", *of],
            [*start, "--operation", "Write", *other, "--resource-pattern-type", "prefixed"],
            [*start, "--operation", "Alter", "--cluster"],
        ]
    )


def test_a_failback_writes_groups_at_the_source(flow_of: FlowOf) -> None:
    """Beyond what copying needs there is one right on each side, and it covers what the syncs had."""
    flow = flow_of("A->B.topics = t", "groups = billing-.*", *SMALL)
    plain, more = required_rights(flow), required_rights(flow, recovery=True)
    wanted = Resource(AclResource.GROUP, "billing-", AclPattern.PREFIXED)
    for before, after, why in ((plain.source, more.source, "failback"), (plain.target, more.target, "failover")):
        added = [right for right in after if right not in before]
        assert [(right.resource, right.operation) for right in added] == [(wanted, Operation.READ)]
        assert any(reason.startswith(why) for reason in added[0].needed_for)
        assert {right for right in before if right not in after} <= {right for right in before if right.resource == wanted}


@pytest.mark.parametrize("text", ["ferry", "User:", ":x", "User:a\nb", "User:\x1b[2J", "", "U ser:x"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="--source-principal"):
        checked_principal(text, "--source-principal")


def test_the_command_prints_all_rights_of_both_sides(flow_of: FlowOf, tmp_path: Path) -> None:
    flow = flow_of("A->B.topics = t", *SMALL)
    file = str(tmp_path / "mm2.properties")
    options = ["--source-principal", "User:x y", "--target-principal", "User:CN=ferry"]
    shown = CliRunner().invoke(app, ["acls", file, "--flow", "A->B", *options])
    assert shown.exit_code == 0
    calls = pasted(tmp_path, shown.stdout.splitlines())
    document = json.loads(CliRunner().invoke(app, ["acls", file, "--flow", "A->B", *options, "--json"]).stdout)
    needed = required_rights(flow)
    assert len(document["source"]["rights"]) == len(needed.source)
    assert (document["version"], document["flow"], document["notes"]) == (1, "A->B", list(needed.notes))
    assert (document["target"]["cluster"], document["target"]["principal"]) == ("B", "User:CN=ferry")
    assert calls == pasted(tmp_path, [entry["command"] for side in ("source", "target") for entry in document[side]["commands"]])
    told = {(call[1], call[4], call[-1]) for call in calls}
    assert ("a:9092", "User:x y", "t") in told
    assert ("b1:9092,b2:9092", "User:CN=ferry", "A.t") in told
    assert json.loads(CliRunner().invoke(app, ["acls", file, "--flow", "A->B", "--json"]).stdout)["source"]["principal"] == "User:ANONYMOUS"
