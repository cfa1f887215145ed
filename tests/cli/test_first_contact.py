"""Commands for which a person waits, and which look at both clusters, connect to both before anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.inside import ferry

from ferry.clusters.open_cluster import OpenCluster
from ferry.errors import ClusterUnreachable, ExitCode, NotAuthorized
from ferry.ledger.sync_outcome import SyncFailure, SyncOutcome, WholeSyncFailure
from ferry.pipeline.syncs import Syncs
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.unit

CONFIG = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nA->B.enabled = true\n"
COMMANDS = [
    ["status"],
    ["plan"],
    ["sync", "topics"],
    ["sync", "all"],
    ["verify"],
    ["explain", "--group", "g"],
    ["translate"],
    ["seed", "--from-mm2"],
    ["export-offsets"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_cluster_that_is_away_is_named_before_anything_else(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_contact(cluster: OpenCluster) -> None:
        if cluster.alias == "B":
            raise ClusterUnreachable("cluster B does not answer")

    monkeypatch.setattr(OpenCluster, "first_contact", first_contact)
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    name, *rest = command
    ended = ferry(name, path, *rest, "--flow", "A->B")
    assert "ferry: ClusterUnreachable: cluster B does not answer; cluster A answers\nnext: check that" in ended.stderr
    assert ended.returncode == ExitCode.UNREACHABLE


def test_a_sync_that_failed_says_what_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def carry_out(_: Syncs, name: SyncName, **options: bool) -> SyncOutcome:
        problem = NotAuthorized("cluster B refuses DescribeAcls")
        one = SyncFailure.of("topic t", problem)
        return SyncOutcome(sync=name.value, failed=(WholeSyncFailure.of(f"sync {name.value}", problem), one))

    monkeypatch.setattr(OpenCluster, "first_contact", lambda _: None)
    monkeypatch.setattr(Syncs, "carry_out", carry_out)
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    ended = ferry("sync", path, "acls", "--flow", "A->B")
    told = [
        "ferry: sync acls: NotAuthorized: cluster B refuses DescribeAcls",
        "ferry: acls: topic t: NotAuthorized: cluster B refuses DescribeAcls",
        f"next: {NotAuthorized.next_step}",
    ]
    assert ended.stderr.splitlines() == told, "a next step once"
    assert ended.stdout == "acls: 2 failed, nothing changed\n"
