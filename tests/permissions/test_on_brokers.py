"""With exactly the rights of `ferry acls` everything works; with any one of them missing, the error names it.

The clusters deny by default. Each right is taken away in turn, and what it is for is done: something must complain, and name the cluster,
the user, the operation and the resource. A right whose absence nobody notices is one too many. `make rights` tries them all.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.both_clusters import both_clusters
from tests.permissions.landscape import READER, USERS, WRITER, Complaint, Side, Stage, done, whole_run
from tests.permissions.variants import GROUP, LONG, TOPIC, VARIANTS, lines, rights_of
from tools.kafka import SandboxCluster, read_all
from tools.kafka.jars import tools_jars

from ferry.clusters.admin.acl_binding import AclPattern, AclResource
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.ledger.open_flow import open_flow
from ferry.page.reads import ReadName, carry_out
from ferry.permissions.commands import commands
from ferry.permissions.required import required_rights
from ferry.permissions.rights import ANYTHING, THE_CLUSTER, Operation, Resource, Right
from ferry.pipeline.syncs import Syncs
from ferry.sandbox.jars import java
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.brokers

# An error that takes longer is a retry until some time-out. A whole run on a loaded machine needs up to ten.
LONGEST_SECONDS = 30.0
# What to try first without a right for this; then everything else.
FIRST = {
    "ACL sync": "sync acls",
    "heartbeats": "sync heartbeat",
    "B->A.emit.heartbeats.enabled=true": "sync heartbeat",
    "offset syncs": "sync offset-syncs, again",
    "checkpoints": "sync checkpoints, again",
    "group offsets": "sync groups",
    "ferry explain": "explain",
    "ferry.publish.source.group": "sync source-group",
    "more partitions": "more partitions",
    "config sync": "sync configs",
    "run reports": "run",
}
# Tried in every test run; `make rights` tries the rest.
SHORT = frozenset(
    {
        "source Describe the cluster",
        "source Describe every group that begins with billing-",
        "source DescribeConfigs every topic that begins with orders-",
        "source Read every topic that begins with orders-",
        "source Write topic heartbeats",
        "target Alter the cluster",
        "target Alter every topic that begins with A.orders-",
        "target AlterConfigs every topic that begins with A.orders-",
        "target Create every topic that begins with A.orders-",
        "target Read every group that begins with billing-",
        "target Read every topic that begins with A.orders-",
        "target Read topic mm2-offset-syncs.A.internal",
        "target Write every topic that begins with A.orders-",
        "target Write every transactional id that begins with ferry-A->B-",
        "target Write topic mm2-ferry-ledger.A.internal",
    }
)


STATES = ("mm2-ferry-state.A.internal", "mm2-ferry-state.B.internal")


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SandboxCluster, SandboxCluster]]:
    """Source and target that deny by default."""
    directory = tmp_path_factory.mktemp("denying")
    with both_clusters(directory, users=USERS, authorizer=True) as pair:
        yield pair


@pytest.fixture(scope="module")
def stages(clusters: tuple[SandboxCluster, SandboxCluster], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    """A stage for each variant; only one is in use at a time."""
    source, target = Side.of(clusters[0], READER), Side.of(clusters[1], WRITER)
    found = {}
    for variant in VARIANTS:
        path = tmp_path_factory.mktemp("config") / "mm2.properties"
        logins = {"A": (READER, USERS[READER]), "B": (WRITER, USERS[WRITER])}
        path.write_text("\n".join(lines(variant, clusters[0].bootstrap, clusters[1].bootstrap, logins)) + "\n", encoding="latin-1")
        found[variant] = Stage(path, source, target, TOPIC, GROUP)
    return found


IN_USE: list[str] = []


def stage_of(stages: dict[str, Stage], variant: str, *, new: bool = False) -> Stage:
    """The variant's stage, with all its rights, and something new to do; on first use, or `new`, as if Ferry had never run."""
    stage = stages[variant]
    if new or [variant] != IN_USE:
        stage.empty()
        for other in stages.values():
            stage.produced = max(stage.produced, other.produced)
        IN_USE[:] = [variant]
    needed = required_rights(stage.flow)
    stage.source.allow(needed.source)
    stage.target.allow(needed.target)
    stage.fill()
    return stage


def everything(stage: Stage) -> list[Complaint]:
    return [complaint for errand, act in stage.errands().items() for complaint in done(errand, act)]


def copied(stage: Stage, variant: str) -> list[int]:
    """The numbers in the remote topic; at-least-once, a run that was refused may have written some before."""
    name = TOPIC if variant == "same names" else f"A.{TOPIC}"
    numbers = [int(record.value or b"") for record in read_all(stage.target.cluster.client_settings(), name)[0]]
    return numbers if stage.flow.exactly_once else list(dict.fromkeys(numbers))


@pytest.mark.long
@pytest.mark.parametrize("variant", [pytest.param(name, marks=pytest.mark.rights) if name in LONG else name for name in VARIANTS])
def test_exactly_these_rights_are_enough(stages: dict[str, Stage], variant: str) -> None:
    stage = stage_of(stages, variant, new=True)
    assert everything(stage) == []
    assert copied(stage, variant) == list(range(stage.produced))


@pytest.mark.long
def test_the_page_reads_with_rights_to_read_alone(stages: dict[str, Stage]) -> None:
    stage = stage_of(stages, "everything")
    assert everything(stage) == []
    everything_of = {kind: Resource(kind, ANYTHING) for kind in (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID)}
    looking = [
        Right(everything_of[AclResource.TOPIC], Operation.READ, ()),
        Right(everything_of[AclResource.TOPIC], Operation.DESCRIBE_CONFIGS, ()),
        Right(everything_of[AclResource.GROUP], Operation.DESCRIBE, ()),
        Right(everything_of[AclResource.TRANSACTIONAL_ID], Operation.DESCRIBE, ()),
        Right(THE_CLUSTER, Operation.DESCRIBE, ()),
        Right(THE_CLUSTER, Operation.DESCRIBE_CONFIGS, ()),
    ]
    stage.source.allow(looking)
    stage.target.allow(looking)
    arguments = {ReadName.COVERAGE: TOPIC, ReadName.GROUP: GROUP}
    found = {name: carry_out(name, stage.flow, arguments.get(name, "")) for name in ReadName}
    assert {row[0] for row in found[ReadName.OVERVIEW]["rows"]} >= {TOPIC}
    assert found[ReadName.COVERAGE]["partitions"]
    assert found[ReadName.RUNS]["runs"]
    assert GROUP in {row["group"] for row in found[ReadName.GROUPS]["groups"]}
    assert found[ReadName.GROUP]["partitions"]
    assert found[ReadName.DRIFT]["failed"] == []


@pytest.mark.long
def test_groups_are_synced_without_the_right_to_read_checkpoints(stages: dict[str, Stage]) -> None:
    stage = stage_of(stages, "everything")
    assert everything(stage) == []
    stage.fill()
    topic = "A.checkpoints.internal"
    unreadable = Resource(AclResource.TOPIC, topic), Operation.READ
    needed = required_rights(stage.flow).target
    stage.target.allow(right for right in needed if (right.resource, right.operation) != unreadable)
    assert whole_run(stage.flow, RunRequest(stage.flow.name, "more")).records
    with open_flow(stage.flow) as opened:
        syncs = Syncs(opened)
        (failure,) = syncs.carry_out(SyncName.CHECKPOINTS, on_request=True).failed
        assert (failure.error, f"grant Read on topic {topic} at cluster B to User:{WRITER}" in failure.problem) == ("NotAuthorized", True)
        synced = syncs.carry_out(SyncName.GROUPS, on_request=True)
        assert synced.failed == ()
        assert f"group {GROUP}, A.{TOPIC}-0" in {change.what for change in synced.changes}


def _cases() -> Iterator[object]:
    for variant in VARIANTS:
        for side, right in rights_of(variant):
            name = f"{side} {right.operation} {right.resource}"
            marks = () if variant == "everything" and name in SHORT else (pytest.mark.rights,)
            yield pytest.param(variant, side, right, marks=marks, id=f"{variant}: {name}")


@pytest.mark.parametrize(("variant", "side", "missing"), [*_cases()])
def test_a_missing_right_is_named(stages: dict[str, Stage], variant: str, side: str, missing: Right) -> None:
    # What is only needed to create topics is missed where none are there yet.
    fresh = missing.operation is Operation.CREATE or any(feature.startswith("creation") for feature in missing.needed_for)
    stage = stage_of(stages, variant, new=fresh)
    if not fresh and not stage_is_ready(stage, variant):
        assert everything(stage) == []
        stage.fill()
    needed = required_rights(stage.flow)
    assert missing in getattr(needed, side)
    getattr(stage, side).allow(right for right in getattr(needed, side) if right != missing)
    complaints = list(until_somebody_complains(stage, missing))
    assert complaints, "nobody misses it"
    assert [complaint for complaint in complaints if not is_well_told(complaint)] == []
    assert [complaint for complaint in complaints if names(complaint, stage, side, missing)]


def stage_is_ready(stage: Stage, variant: str) -> bool:
    """Whether the flow has run with all its rights."""
    return bool(stage.target.topics() & {TOPIC if variant == "same names" else f"A.{TOPIC}"})


def until_somebody_complains(stage: Stage, missing: Right) -> Iterator[Complaint]:
    errands = stage.errands()
    first = next((FIRST[feature] for feature in missing.needed_for if feature in FIRST), "run")
    for errand in (first, *(name for name in errands if name != first)):
        began = time.monotonic()
        complaints = done(errand, errands[errand])
        assert time.monotonic() - began < LONGEST_SECONDS, f"{errand} took too long"
        yield from complaints
        if complaints:
            return


def is_well_told(complaint: Complaint) -> bool:
    """One of a missing right, with an exit code of a refusal: 3 where nothing could be done, 5 beside what was."""
    return "grant " in complaint.problem and complaint.code in {ExitCode.UNREACHABLE, ExitCode.PARTLY_FAILED}


def names(complaint: Complaint, stage: Stage, side: str, missing: Right) -> bool:
    alias, user = ("A", READER) if side == "source" else ("B", WRITER)
    resource = missing.resource
    kind = resource.kind.value.replace("-", " ")
    if resource.kind is AclResource.CLUSTER:
        told = {"the cluster"}
    else:
        told = {str(resource), *(f"{kind} {name}" for name in (resource.name, TOPIC, f"A.{TOPIC}", GROUP, *STATES))}
        if resource.pattern is AclPattern.PREFIXED:
            told |= {f"{kind} {resource.name}{end}" for end in ("run", "0", "1")}
    granted = re.findall(rf"grant ([A-Za-z, ]+) on (.+?) at cluster {alias} to User:{user}", complaint.problem)
    return any(what in told and missing.operation.value in rights.split(", ") for rights, what in granted)


@pytest.mark.rights
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_was_half_done(stages: dict[str, Stage], variant: str) -> None:
    """After all that, with every right again, the copies are what was produced."""
    stage = stage_of(stages, variant)
    assert everything(stage) == []
    assert copied(stage, variant) == list(range(stage.produced))


@pytest.mark.rights
def test_kafkas_own_tool_takes_the_commands(stages: dict[str, Stage], tmp_path: Path) -> None:
    """The commands as they are printed, in a shell; and a whole run by Spark with what they gave."""
    stage = stage_of(stages, "all topics", new=True)
    tool = tmp_path / "kafka-acls.sh"
    tool.write_text(f'#!/bin/bash\nexec {java()} -XX:TieredStopAtLevel=1 -cp "{tools_jars()}/*" org.apache.kafka.tools.AclCommand "$@"\n')
    tool.chmod(0o755)
    needed = required_rights(stage.flow)
    for side, rights in ((stage.source, needed.source), (stage.target, needed.target)):
        side.allow(())
        admin = tmp_path / "admin.properties"
        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="{USERS["admin"]}";'
        admin.write_text("".join(f"{name}={value}\n" for name, value in {**settings, "sasl.jaas.config": jaas}.items()))
        script = "\n".join(command for _, command in commands(side.cluster.bootstrap, side.principal, rights, str(admin)))
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done_by_tool = subprocess.run(
            ["/bin/bash", "-e"], input=script, text=True, check=False, capture_output=True, env=environment, timeout=240
        )
        assert done_by_tool.returncode == 0, done_by_tool.stderr + done_by_tool.stdout
    document = subprocess.run(
        ["ferry", "run", str(stage.path), "--flow", "A->B", "--master", "local[2]"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert document.returncode == 0, document.stderr
    assert copied(stage, "all topics") == list(range(stage.produced))
    # What the tool wrote is what the tests above apply.
    for side, rights in ((stage.source, needed.source), (stage.target, needed.target)):
        written = side.bindings()
        side.allow(rights)
        assert (side.bindings(), len(written)) == (written, len(rights))
