"""The trigger that starts DAGs when records arrive, and the schedule that has it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset, AssetOrTimeSchedule, CronDataIntervalTimetable
from airflow.triggers.base import TriggerEvent
from tests.waiting import until

from ferry.airflow import arrivals
from ferry.airflow.arrivals import RecordsArrived
from ferry.airflow.replication_dag import timetable
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import load_config
from ferry.errors import ClusterUnreachable

pytestmark = pytest.mark.airflow

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
FOUND = {TopicPartition("orders", 0): (3, 5)}


@pytest.fixture
def scheduled(tmp_path: Path) -> Any:
    def schedule(*lines: str) -> Any:
        config = tmp_path / "mm2.properties"
        config.write_text(BASE + "\n".join(lines) + "\n")
        return timetable(load_config(config).flow("A->B"), config)

    return schedule


def test_the_schedule_is_cron_or_records_or_both(scheduled: Any, tmp_path: Path) -> None:
    cron, watch = "A->B.ferry.schedule = 0 * * * *", "A->B.ferry.watch.seconds = 5"
    assert scheduled() is None
    assert isinstance(scheduled(cron), CronDataIntervalTimetable)
    (asset,) = scheduled(watch)
    both = scheduled(cron, watch)
    assert isinstance(both, AssetOrTimeSchedule)
    assert isinstance(both.timetable, CronDataIntervalTimetable)
    assert isinstance(asset, Asset)
    (watcher,) = asset.watchers
    assert watcher.trigger.serialize() == (
        "ferry.airflow.arrivals.RecordsArrived",
        {"config": str(tmp_path / "mm2.properties"), "flow": "A->B", "dag_id": "ferry.A.B", "seconds": 5},
    )


class NothingMore(Exception):
    """Ends the trigger."""


class Looks:
    """Plays what looks find, one after the other."""

    def __init__(self, *found: Any) -> None:
        self._found, self.told = list(found), list[Any]()
        self.closed = False

    def look(self) -> Any:
        if not self._found:
            raise NothingMore
        found = self._found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def started(self, found: Any) -> None:
        self.told.append(found)

    def still_active(self) -> None:
        self.told.append("active")

    def close(self) -> None:
        self.closed = True


def events(monkeypatch: pytest.MonkeyPatch, looks: Looks, *active: bool) -> list[TriggerEvent]:
    states = list(active)
    monkeypatch.setattr(arrivals, "Arrivals", lambda _: looks)
    monkeypatch.setattr(RecordsArrived, "_is_active", lambda _: states.pop(0))

    async def gather() -> list[TriggerEvent]:
        sent = []
        try:
            async for event in RecordsArrived("mm2.properties", "A->B", "ferry.A.B", 0).run():
                sent.append(event)  # noqa: PERF401 - what was sent before the end counts
        except NothingMore:
            pass
        return sent

    return asyncio.run(gather())


def test_an_event_for_records_and_none_while_a_run_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks({}, FOUND, FOUND)
    sent = events(monkeypatch, looks, True, False)
    assert [event.payload for event in sent] == [{"flow": "A->B", "partitions": 1}]
    assert looks.told == ["active", FOUND]
    until(lambda: looks.closed)  # its thread does it


def test_a_cluster_that_does_not_answer_is_named_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    away = ClusterUnreachable("cluster A does not answer")
    assert len(events(monkeypatch, Looks(away, away, FOUND), False)) == 1
    assert caplog.text.count("cluster A does not answer") == 1
    assert "answer again" in caplog.text
