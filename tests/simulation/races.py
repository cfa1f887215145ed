"""Questions while the markers of a transaction are written: a real broker answers as before their end, or as after it.

Two requests leave at once over one connection: the end of a transaction, and a second one, which the broker handles in the moment after its
answer to the first. The simulated cluster says which answers are possible, over all orders of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from tests.simulation.asker import Asker
from tests.simulation.asks import (
    V1_END,
    V1_OFFSETS,
    V1_PRODUCE,
    V2_END,
    V2_OFFSETS,
    V2_PRODUCE,
    AddOffsets,
    AddPartitions,
    Ask,
    CommitInTransaction,
    End,
    Init,
    Memory,
    Produce,
)
from tests.simulation.asks_of_admins import CreateTopics, FindCoordinators
from tests.simulation.codes import Code, codes_of
from tests.simulation.steps import Step, StepKind
from tests.simulation.topics import GROUPS_TOPIC

TOPIC, ID, GROUP = "races", "racer", "racers"
# Many markers take long. The last partition is not in the transaction.
WIDTH = 20
EPOCHS = (-1, 0, 1, 2)


def begin(version: int, id_: str = ID) -> list[Ask]:
    """What comes before each race; `version` of transactions. Each race has an id of its own, so none sees what another has left."""
    asks: list[Ask] = [Init(id_), Init(id_, holding="w")]
    for part in range(WIDTH - 1):
        asks += [] if version >= 2 else [AddPartitions(id_, TOPIC, part)]
        asks.append(Produce(TOPIC, part, writer="w", id=id_, version=V2_PRODUCE if version >= 2 else V1_PRODUCE))
    asks += [] if version >= 2 else [AddOffsets(id_, GROUP)]
    return [*asks, CommitInTransaction(id_, GROUP, TOPIC, offset=5, version=V2_OFFSETS if version >= 2 else V1_OFFSETS)]


def once() -> list[Ask]:
    """What comes before all races."""
    return [CreateTopics(TOPIC, WIDTH), FindCoordinators((ID,), 1), FindCoordinators((GROUP,)), Init(None, writer="other")]


def first(version: int, id_: str = ID) -> End:
    return End(id_, version=V2_END if version >= 2 else V1_END)


def seconds(version: int) -> list[Ask]:
    """The second request of each race."""
    end, produce, offsets = (V2_END, V2_PRODUCE, V2_OFFSETS) if version >= 2 else (V1_END, V1_PRODUCE, V1_OFFSETS)
    asks: list[Ask] = [End(ID, version=end, commits=commits, epochs=epochs) for commits in (True, False) for epochs in EPOCHS]
    asks += [Init(ID, writer="late", holding="w", epochs=epochs) for epochs in EPOCHS]
    asks += [Produce(TOPIC, WIDTH - 1, writer="w", id=ID, epochs=epochs, version=produce) for epochs in EPOCHS]
    asks += [Produce(TOPIC, 0, writer="w", id=ID, sequence=1, epochs=epochs, version=produce) for epochs in (0, 1)]
    asks += [Produce(TOPIC, 0, writer="w", id=ID, epochs=1, version=produce)]
    asks += [CommitInTransaction(ID, GROUP, TOPIC, epochs=epochs, version=offsets) for epochs in EPOCHS]
    asks += [AddPartitions(ID, TOPIC, WIDTH - 1, epochs=epochs) for epochs in EPOCHS]
    others: list[Ask] = [
        End(ID, version=end, writer="other"),
        Init(ID, writer="late"),
        Init(ID, writer="late", holding="other"),
        Produce(TOPIC, WIDTH - 1, writer="other", id=ID, version=produce),
        CommitInTransaction(ID, GROUP, TOPIC, writer="other", version=offsets),
        AddPartitions(ID, TOPIC, WIDTH - 1, writer="other"),
    ]
    return [*asks, *others]


# How far the end of the transaction has come: which steps are done.
_AT_TOPIC, _AT_GROUP = f"{TOPIC}-0", GROUPS_TOPIC
Stage = Callable[[Step], bool]
_STAGES: Sequence[Stage] = (
    lambda _: False,
    lambda step: step.about.endswith(_AT_TOPIC),
    lambda step: _AT_GROUP in step.about,
    lambda step: step.kind is not StepKind.COMPLETE,
    lambda _: True,
)
# From each stage the end can come to these while the second request waits.
_NEXT = ((0, 1, 2, 3, 4), (1, 3, 4), (2, 3, 4), (3, 4), (4,))


def possible(second: Ask, **settings: Any) -> list[set[int]]:
    """The codes that the simulated cluster answers, whatever the order of its steps. `settings`: of the cluster.

    A real broker may find the transaction open, and write after its marker: it refuses then (VerificationGuard). Here both are one step.
    """
    pairs = [(stage, later) for stage, nexts in enumerate(_NEXT) for later in nexts]
    found = [codes_of(_answer(second, _STAGES[stage], _STAGES[later], settings)) for stage, later in pairs]
    found += [{Code.INVALID_TXN_STATE}] if isinstance(second, Produce | CommitInTransaction) else []
    return [codes for place, codes in enumerate(found) if codes not in found[:place]]


def _answer(second: Ask, stage: Stage, later: Stage, settings: Mapping[str, Any]) -> Any:
    ask, version = Asker(**settings), settings["transaction_version"]
    for one in [*once(), *once()[1:3], *begin(version)]:
        ask(one)
    end, then = first(version).request(ask.memory), second.request(ask.memory)
    assert ask.cluster.submit(end, 1).answer.error_code == 0
    _run(ask, stage)
    reply = ask.cluster.submit(then, 1)
    _run(ask, later)
    ask.cluster.advance(ask.cluster.now + 1_000)
    _run(ask, lambda step: later(step) or step.kind is StepKind.ANSWER)
    return reply.answer


def _run(ask: Asker, done: Stage) -> None:
    for step in ask.cluster.steps:
        if done(step):
            ask.cluster.run(step)


# By the second request, the codes that a real broker gave, and those that are possible.
Surprises = Mapping[str, tuple[list[set[int]], list[set[int]]]]


def surprises(
    times: int, ask: Callable[[Ask], Any], both: Callable[[Any, Any], tuple[Any, Any]], memory: Memory, **settings: Any
) -> Surprises:
    """What a real broker answers otherwise. `both` sends two requests at once; `settings`: of the simulated cluster."""
    found, numbers, version = {}, count(), settings["transaction_version"]
    for one in once():
        ask(one)
    for second in seconds(version):
        seen = []
        for _ in range(times):
            id_ = f"{ID}-{next(numbers)}"
            for before in begin(version, id_):
                ask(before)
            own = replace(second, id=id_)
            ended, told = both(first(version, id_).request(memory), own.request(memory))
            assert ended.error_code == 0
            seen.append(codes_of(told))
        allowed = possible(second, **settings)
        if any(told not in allowed for told in seen):
            found[repr(second)] = seen, allowed
    return found
