"""When records at the source start a run: the decision, and what a look finds on real clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from confluent_kafka import Producer
from tests.conftest import Lab
from tests.waiting import until

from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow, load_config
from ferry.monitoring import arrivals as module
from ferry.monitoring.arrivals import FIRST_PAUSE, LONGEST_PAUSE, Arrivals, Starts, behind

ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
PLACES = {key: TopicPartition(f"A.{key.topic}", key.partition) for key in (ORDERS, OTHER)}


@pytest.mark.unit
def test_behind_is_what_lies_after_the_position() -> None:
    assert behind(PLACES, {PLACES[ORDERS]: 7}, {ORDERS: 9, OTHER: 0}) == {ORDERS: (7, 9), OTHER: (None, 0)}
    assert behind(PLACES, {PLACES[ORDERS]: 9, PLACES[OTHER]: 4}, {ORDERS: 9, OTHER: 4}) == {}
    assert behind(PLACES, {PLACES[ORDERS]: 9, PLACES[OTHER]: 4}, {ORDERS: 9, OTHER: 3}) == {OTHER: (4, 3)}
    assert behind(PLACES, {PLACES[ORDERS]: 7}, {}) == {}  # a leader that does not answer is no reason for a run


@pytest.mark.unit
def test_a_run_starts_for_records_and_the_next_one_when_it_has_helped() -> None:
    starts = Starts()
    assert not starts.due({}, 0)
    assert starts.due({ORDERS: (0, 5)}, 0)
    starts = starts.started({ORDERS: (0, 5)}, 0)
    assert not starts.due({ORDERS: (0, 5)}, FIRST_PAUSE - 1)
    assert not starts.due({ORDERS: (0, 6)}, FIRST_PAUSE - 1)  # the run that starts copies it
    assert not starts.due({}, 1_000_000)
    assert starts.due({ORDERS: (5, 6)}, 1)
    assert starts.due({OTHER: (0, 1)}, 1)


@pytest.mark.unit
def test_runs_that_change_no_position_start_after_growing_pauses() -> None:
    starts, now, pauses = Starts().started({ORDERS: (0, 1)}, 0), 0.0, []
    for end in range(2, 10):
        begun = now
        while not starts.due({ORDERS: (0, end)}, now):
            now += 1
        pauses.append(now - begun)
        starts = starts.started({ORDERS: (0, end)}, now)
    assert pauses == [FIRST_PAUSE, 60, 120, 240, 480, *[LONGEST_PAUSE] * 3]
    # One partition that moves is enough, also if another one is stopped.
    both = {ORDERS: (3, 12), OTHER: (0, 1)}
    assert starts.due(both, now)
    starts = starts.started(both, now)
    assert starts.pause == FIRST_PAUSE
    assert starts.due({OTHER: (0, 2)}, now)
    # A partition that is stopped for long delays no other one.
    starts = Starts().started({ORDERS: (0, 1)}, now).started({ORDERS: (0, 1)}, now)
    assert not starts.due({ORDERS: (0, 1)}, now)
    assert starts.due({ORDERS: (0, 1), OTHER: (4, 5)}, now)


@pytest.mark.unit
def test_heartbeats_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mm2.properties"
    servers = "\n".join(f"{alias}.bootstrap.servers = {alias}:1" for alias in "ABC")
    config.write_text(f"clusters = A, B, C\n{servers}\nA->B.enabled = true\n")
    source = MagicMock()
    source.topics.return_value = {name: SimpleNamespace(partitions=1) for name in ("heartbeats", "orders", "B.orders", "C.heartbeats")}
    source.end_offsets.side_effect = lambda places: (dict.fromkeys(places, 4), {})
    monkeypatch.setattr(
        module, "open_flow", lambda flow: nullcontext(SimpleNamespace(flow=flow, source=SimpleNamespace(admin=source), target=None))
    )
    monkeypatch.setattr(module, "ask_positions", lambda *_, **__: SimpleNamespace(answer=lambda: {PLACES[ORDERS]: 1}))
    looking = Arrivals(lambda: load_config(config).flow("A->B"))
    assert looking.look() == {ORDERS: (1, 4)}
    assert looking.look() == {ORDERS: (1, 4)}  # nobody has said that a run was started
    source.topics.assert_called_once()
    looking.close()


@pytest.fixture
def arrivals(lab: Lab) -> Iterator[tuple[Arrivals, Flow, str]]:
    topic = lab.topic(lab.source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}, {topic}-later", "refresh.topics.interval.seconds = 0", *lab.copy_only)
    looking = Arrivals(lambda: flow)
    yield looking, flow, topic
    looking.close()


@pytest.mark.brokers
def test_a_look_finds_records_new_topics_and_aborted_transactions_once(arrivals: tuple[Arrivals, Flow, str], lab: Lab) -> None:
    looking, flow, topic = arrivals
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def copied() -> None:
        lab.run(flow)
        assert looking.look() == {}

    # A flow that never ran: a run makes its remote topics, although they are empty.
    assert looking.look() == {first: (None, 0), second: (None, 0)}
    copied()
    lab.produce(lab.source, topic, [(0, None, b"x"), (0, None, b"y")])
    found = looking.look()
    assert found == {first: (0, 2)}
    looking.started(found)
    assert looking.look() == {}
    lab.produce(lab.source, topic, [(1, None, b"x")])
    copied()

    writer = Producer({**lab.source.client_settings(), "transactional.id": topic})
    writer.init_transactions()
    writer.begin_transaction()
    writer.produce(topic, b"aborted", partition=0)
    writer.flush()
    during = looking.look()
    writer.abort_transaction()
    assert during == {}
    until(lambda: looking.look() == {first: (2, 4)})  # the broker writes the marker after it has answered
    copied()

    lab.topic(lab.source, name=f"{topic}-later")
    assert looking.look() == {TopicPartition(f"{topic}-later", 0): (None, 0)}
    copied()
