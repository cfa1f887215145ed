"""Questions while the markers of a transaction are written: a real broker answers as before their end, or as after it.

Two requests leave at once over one connection: the end of a transaction, and a second one, which the broker handles in the moment after its
answer to the first. The simulated cluster gives both answers that are possible then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from tests.simulation.codes import Code
from tests.simulation.steps import StepKind

TOPIC, ID, GROUP = "races", "racer", "racers"
# Many markers take long. The last partition is not in the transaction.
WIDTH = 20
EPOCHS = (-1, 0, 1, 2)


def begin(version: int) -> list[Ask]:
    """What comes before each race; `version` of transactions."""
    asks: list[Ask] = [Init(ID), Init(ID, holding="w")]
    for part in range(WIDTH - 1):
        asks += [] if version >= 2 else [AddPartitions(ID, TOPIC, part)]
        asks.append(Produce(TOPIC, part, writer="w", id=ID, version=V2_PRODUCE if version >= 2 else V1_PRODUCE))
    asks += [] if version >= 2 else [AddOffsets(ID, GROUP)]
    return [*asks, CommitInTransaction(ID, GROUP, TOPIC, offset=5, version=V2_OFFSETS if version >= 2 else V1_OFFSETS)]


def once() -> list[Ask]:
    """What comes before all races."""
    return [CreateTopics(TOPIC, WIDTH), FindCoordinators((ID,), 1), FindCoordinators((GROUP,)), Init(None, writer="other")]


def first(version: int) -> End:
    return End(ID, version=V2_END if version >= 2 else V1_END)


def seconds(version: int) -> list[Ask]:
    """The second request of each race."""
    end, produce, offsets = (V2_END, V2_PRODUCE, V2_OFFSETS) if version >= 2 else (V1_END, V1_PRODUCE, V1_OFFSETS)
    asks: list[Ask] = [End(ID, version=end, commits=commits, epochs=epochs) for commits in (True, False) for epochs in EPOCHS]
    asks += [Init(ID, writer="late", holding="w", epochs=epochs) for epochs in EPOCHS]
    asks += [Produce(TOPIC, WIDTH - 1, writer="w", id=ID, epochs=epochs, version=produce) for epochs in EPOCHS]
    asks += [Produce(TOPIC, 0, writer="w", id=ID, sequence=1, epochs=epochs, version=produce) for epochs in (0, 1)]
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


def possible(second: Ask, version: int, codes: Callable[[Any], set[int]]) -> list[set[int]]:
    """The codes that the simulated cluster answers: while no marker is written, when all but the last step are done, and afterwards.

    A real broker may find the transaction open, and write after its marker: it refuses then (VerificationGuard). Here both are one step.
    """
    found = [_codes(second, version, codes, stops) for stops in ((StepKind.MARK, StepKind.COMPLETE), (StepKind.COMPLETE,), ())]
    return [*found, {Code.INVALID_TXN_STATE}] if isinstance(second, Produce | CommitInTransaction) else found


def _codes(second: Ask, version: int, codes: Callable[[Any], set[int]], stops: Sequence[StepKind]) -> set[int]:
    ask = Asker(transaction_version=version)
    for one in [*once(), *once()[1:3], *begin(version)]:
        ask(one)
    end, then = first(version).request(ask.memory), second.request(ask.memory)
    assert ask.cluster.submit(end, 1).answer.error_code == 0
    _run(ask, stops)
    reply = ask.cluster.submit(then, 1)
    ask.cluster.advance(ask.cluster.now + 1_000)
    _run(ask, stops)
    return codes(reply.answer)


def _run(ask: Asker, stops: Sequence[StepKind]) -> None:
    for step in ask.cluster.steps:
        if step.kind not in stops:
            ask.cluster.run(step)


# By the second request, the codes that a real broker gave, and those that are possible.
Surprises = Mapping[str, tuple[list[set[int]], list[set[int]]]]


def surprises(
    version: int,
    times: int,
    ask: Callable[[Ask], Any],
    both: Callable[[Any, Any], tuple[Any, Any]],
    memory: Memory,
    codes: Callable[[Any], set[int]],
) -> Surprises:
    """What a real broker answers otherwise. `both` sends two requests at once; `ask` waits until markers are written."""
    found = {}
    for one in once():
        ask(one)
    for second in seconds(version):
        seen = []
        for _ in range(times):
            for before in begin(version):
                ask(before)
            ended, told = both(first(version).request(memory), second.request(memory))
            assert ended.error_code == 0
            seen.append(codes(told))
        allowed = possible(second, version, codes)
        if any(told not in allowed for told in seen):
            found[repr(second)] = seen, allowed
    return found
