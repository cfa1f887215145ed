"""What a plan and a status say that look on while a run commits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import Lab
from tests.opened import plan_run

from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.copying import snapshot
from ferry.copying.request import RunRequest

pytestmark = pytest.mark.brokers

LOOK = RunRequest("", "look")
PARTITIONS = 2


def test_a_commit_between_head_and_position_is_no_disagreement_and_a_lasting_one_is(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = lab.topic(lab.source, partitions=PARTITIONS)
    flow = lab.flow(f"A->B.topics = {topic}")
    ask, looks, commits, wrong_by = snapshot.ask_positions, 0, 0, 0

    def copy_more(partitions: int = PARTITIONS) -> None:
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(snapshot, "ask_positions", ask)
            lab.produce(lab.source, topic, [(number % partitions, None, b"%d" % number) for number in range(10)])
            lab.run(flow)

    def while_a_run_commits(*cluster_and_group: Any, stable: bool) -> Asked[dict[TopicPartition, int]]:
        def answer() -> dict[TopicPartition, int]:
            nonlocal looks
            looks += 1
            if looks <= commits:
                copy_more()
            return {key: position + wrong_by for key, position in ask(*cluster_and_group, stable=stable).answer().items()}

        return Asked(answer)

    copy_more(partitions=1)
    monkeypatch.setattr(snapshot, "ask_positions", while_a_run_commits)
    commits = 1
    assert (plan_run(flow, LOOK).failed, looks) == ((), 2)
    looks, commits = 0, snapshot.LOOKS
    assert (plan_run(flow, LOOK).failed, looks) == ((), snapshot.LOOKS)
    looks, commits, wrong_by = 0, 0, 7
    assert [failure.error for failure in plan_run(flow, LOOK).failed] == ["PositionDisagrees"] * PARTITIONS
    assert looks == 4, "a disagreement that stays the same is looked at twice, and so is a plan that fails by it"
