"""A leader that appended a batch, and says that its replicas did not follow in time: whatever it takes, the record stands there once."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.conftest import Lab
from tools.kafka import read_all

from ferry.clusters.logs.producing import Answer
from ferry.clusters.net.error_policy import Action
from ferry.copying import appender, lane
from ferry.errors import ExitCode

pytestmark = pytest.mark.brokers

RECORDS = 20


@pytest.mark.parametrize("patience", [lane.UNCLEAR_SECONDS, 0.0], ids=["sent again in its transaction", "given up"])
def test_no_commit_shows_what_was_not_accepted(patience: float, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is a real one and appends what it gets. Only its answers for partition 0 are changed, for longer than a transaction."""
    topic = lab.topic(lab.source, partitions=2)
    flow = lab.flow(f"A->B.topics = {topic}", "A->B.ferry.lanes = 1", "A->B.ferry.transaction.seconds = 1")
    lab.produce(lab.source, topic, [(number % 2, None, b"%d" % number) for number in range(RECORDS)])
    remote = f"{flow.source.alias}.{topic}", 0
    read, begun = appender.produce_answers, list[float]()

    def slow(*arguments: Any) -> dict[tuple[str, int], Answer]:
        answers = read(*arguments)
        if remote in answers:
            begun.append(time.monotonic())
            if begun[-1] - begun[0] < 3.0:
                answers[remote] = Answer(Action.LEADER, -1, "REQUEST_TIMED_OUT (7)", unclear=True)
        return answers

    monkeypatch.setattr(appender, "produce_answers", slow)
    monkeypatch.setattr(lane, "UNCLEAR_SECONDS", patience)
    assert lab.run(flow).exit_code is ExitCode.DONE
    copied = read_all(lab.target.bootstrap, remote[0])
    assert [[record.value for record in part] for part in copied] == [[b"%d" % number for number in range(at, RECORDS, 2)] for at in (0, 1)]
