"""Which refreshed topics are announced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from tests.airflow.variables import Variables
from tests.alerting import callbacks

from ferry.airflow import assets, open_alerts, versions
from ferry.airflow.flows import FlowReference
from ferry.config import load_config
from ferry.config.settings import AlertSettings
from ferry.pipeline.refreshed import RefreshedPartition, RefreshedTopic

pytestmark = pytest.mark.airflow

ENTRY = RefreshedPartition(0, 0, 5, 0, 6, 5, 50, 5)
REFRESHED = tuple(RefreshedTopic(name, f"A.{name}", (ENTRY,), -1, -1) for name in ("heartbeats", "orders", "payments"))
COPIED = {"needs_copy": True, "dry_run": False}


class Events(dict[str, list[str]]):
    """What Airflow gives a task to add events to."""

    def __getitem__(self, alias: Any) -> Any:
        told = self.setdefault(alias.name, [])
        return SimpleNamespace(add=lambda asset, extra: told.append(f"{asset.name} {extra['records']}"))


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    variables = Variables()

    def announce(planned: dict[str, Any], *, most: int = 9, read: tuple[RefreshedTopic, ...] = REFRESHED) -> list[str]:
        settings = AlertSettings(assets_max=most, callbacks=("tests.alerting.callbacks:tell",))
        config = tmp_path / "mm2.properties"
        config.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
        flow = replace(load_config(config).flow("A->B"), alerts=settings)
        events = Events()
        task = SimpleNamespace(log_url="http://x/log", dag_id="ferry.A.B", task_id="announce_topics")
        context = {"ti": task, "outlet_events": events}
        monkeypatch.setattr(open_alerts, "Variable", variables)
        monkeypatch.setattr(assets, "get_current_context", lambda: context)
        monkeypatch.setattr(assets, "flow_for_running", lambda _: flow)
        monkeypatch.setattr(assets, "request_of", lambda *_: SimpleNamespace(run_id="r1"))
        monkeypatch.setattr(assets, "read_refreshed", lambda *_: read)
        callbacks.TOLD.clear()
        assets.announce(FlowReference(config, "A->B"), planned)
        return events.get("ferry.A.B.topics", [])

    return announce


def test_an_event_for_each_topic(announced: Any) -> None:
    assert announced(COPIED) == [f"ferry://B/topics/A.{name} 5" for name in ("heartbeats", "orders", "payments")]
    assert not callbacks.TOLD


def test_an_event_of_airflow_3_0_holds_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = REFRESHED[0].facts("A->B", "r1")
    assert versions.extra_of_event(facts) == facts
    monkeypatch.setattr(versions, "AIRFLOW", (3, 0))
    assert facts.keys() - versions.extra_of_event(facts) == {"partitions"}


def test_topics_beyond_the_limit_raise_an_alert(announced: Any) -> None:
    assert announced(COPIED, most=2) == ["ferry://B/topics/A.heartbeats 5", "ferry://B/topics/A.orders 5"]
    ((_, alert),) = callbacks.TOLD
    assert "not announced: 1 refreshed topic, A.payments" in str(alert)
    announced(COPIED)
    ((_, over),) = callbacks.TOLD
    assert (over["key"], over["resolved"]) == (alert["key"], True)
    announced(COPIED)
    assert not callbacks.TOLD, "once"


def test_zero_switches_the_events_off_and_is_no_limit(announced: Any) -> None:
    with pytest.raises(AirflowSkipException, match=r"ferry\.airflow\.assets\.max = 0"):
        announced(COPIED, most=0)
    assert not callbacks.TOLD


def test_a_cleared_run_announces_what_its_earlier_try_copied(announced: Any) -> None:
    """Its new plan has nothing to copy any more; heartbeats that it took along in passing are no news."""
    idle = {"needs_copy": False, "dry_run": False}
    with pytest.raises(AirflowSkipException, match="nothing was copied"):
        announced(idle)
    again = {**idle, "again": True}
    assert announced(again) == ["ferry://B/topics/A.orders 5", "ferry://B/topics/A.payments 5"]
    with pytest.raises(AirflowSkipException, match="no remote topic was refreshed"):
        announced(again, read=REFRESHED[:1])
    with pytest.raises(AirflowSkipException, match="dry run"):
        announced({**again, "dry_run": True})
