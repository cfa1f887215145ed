"""`ferry status` names the flows that it could not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ferry.cli.main import app
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import load_config
from ferry.errors import ClusterUnreachable
from ferry.ledger.open_flow import OpenFlow
from ferry.monitoring.health import FlowHealth
from ferry.page.flow_reading import read_overview

pytestmark = pytest.mark.unit

CONFIG = """\
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
A->C.enabled = true
"""


@pytest.mark.parametrize("away", [{"B"}, {"B", "C"}])
def test_a_flow_that_cannot_be_read_is_named(away: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flow_status(opened: OpenFlow) -> FlowHealth:
        flow = opened.flow
        if flow.target.alias in away:
            raise ClusterUnreachable(f"cluster {flow.target.alias} does not answer")
        return FlowHealth(flow.name, ())

    monkeypatch.setattr("ferry.monitoring.status.flow_status", flow_status)
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG, encoding="latin-1")
    outcome = CliRunner().invoke(app, ["status", str(path)])
    assert [name for name in ("B", "C") if f"A->{name} cannot be read" in outcome.stdout] == sorted(away)
    assert ("A->C is healthy" in outcome.stdout) is ("C" not in away)
    assert isinstance(outcome.exception, ClusterUnreachable)
    assert str(outcome.exception) == f"A->{min(away)}: cluster {min(away)} does not answer"
    assert outcome.stderr.splitlines() == [
        f"ferry: ClusterUnreachable: A->{name}: cluster {name} does not answer" for name in sorted(away)[1:]
    ]
    told = CliRunner().invoke(app, ["status", str(path), "--json"]).stdout
    if away == {"B"}:
        unread = json.loads(told)["unread"]
        assert {name: entry["error"] for name, entry in unread.items()} == {"A->B": "ClusterUnreachable"}
    else:
        assert told == "", "all that is to be said is said as of any command that fails"


def test_a_target_that_is_away_is_told_with_the_source_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first_contact(cluster: OpenCluster) -> None:
        if cluster.alias == "B":
            raise ClusterUnreachable("cluster B does not answer")

    monkeypatch.setattr(OpenCluster, "first_contact", first_contact)
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG, encoding="latin-1")
    outcome = CliRunner().invoke(app, ["status", str(path), "--flow", "A->B"])
    assert str(outcome.exception) == "cluster B does not answer; cluster A answers"
    assert "its positions and its runs are kept on cluster B; Airflow shows" in " ".join(outcome.stdout.split())
    with pytest.raises(ClusterUnreachable, match=r"; cluster A answers$"):
        read_overview(load_config(path).flows[0])  # the page says the same
