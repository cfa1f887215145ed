"""A real broker that is asked the same as a simulated one, over Ferry's own connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import DescribeTransactionsRequest
from tests.simulation.asks import Ask, EpochEnd, Fetch, ListOffsets, Memory, Producers
from tests.simulation.asks_of_admins import DescribeConfigs, DescribeGroups, DescribeTransactions, ListGroups, Metadata, Offsets
from tests.simulation.codes import codes_of
from tests.waiting import until

from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, ended
from ferry.config import ClientRole, Flow

# Codes that pass by themselves: elections, coordinators that begin, markers that are written, topics that are still deleted.
PASSING = frozenset({3, 5, 6, 14, 15, 16, 19, 36, 51, 88, 100})
# A broker shows some changes a moment later: a deleted topic, offsets of its groups.
READS = (Fetch, ListOffsets, EpochEnd, Producers, Offsets, Metadata, DescribeConfigs, DescribeGroups, ListGroups, DescribeTransactions)
# Much longer than a busy machine needs; a difference that stays costs so long.
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.02
NODE = 1


class RealBroker:
    """Asks over Ferry's own connection."""

    def __init__(self, flow: Flow) -> None:
        self._loop = EventLoop()
        self._connection = ClusterConnection(self._loop, flow.target, ClientRole.ADMIN)
        self._loop.run(self._connection.open)

    def close(self) -> None:
        self._connection.close()
        self._loop.close()

    def _sent(self, request: Any) -> Any:
        """The answer; None if the release does not know the request."""
        try:
            return self._loop.run(self._connection.send, request, NODE)
        except RequestNotSent as problem:
            if isinstance(problem.__cause__, IncompatibleBrokerVersion):
                return None
            raise

    def ask(self, ask: Ask, request: Any, as_expected: Callable[[Any], bool]) -> Any:
        """The answer; asked again while it is not the expected one, if it has a code that passes, or the request only reads."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._sent(request)
            is_final = not isinstance(ask, READS) and not codes_of(answer) & PASSING
            if as_expected(answer) or is_final or time.monotonic() > deadline:
                return answer
            self._loop.run(self._loop.sleep, PAUSE_SECONDS)

    def wait(self, ids: Sequence[str]) -> None:
        """Until no transaction of these ids is decided without all its markers."""

        def settled() -> bool:
            request = DescribeTransactionsRequest(transactional_ids=list(ids))
            answer = self._sent(request)
            return answer is None or not any(told.transaction_state.startswith("Prepare") for told in answer.transaction_states)

        if ids:
            until(settled)

    def asked(self, ask: Ask, memory: Memory) -> Any:
        """The answer, when what passes has passed."""
        answer = self.ask(ask, ask.request(memory), lambda answer: not codes_of(answer) & PASSING)
        ask.learn(memory, answer)
        return answer

    def both(self, first: Any, second: Any) -> tuple[Any, Any]:
        """The answers to two requests that leave at once."""
        futures = [self._connection.submit(request, NODE) for request in (first, second)]
        self._loop.run(ended, futures)
        return futures[0].value, futures[1].value
