"""Asks a simulated cluster, and checks of every answer that kafka-python would have decoded this very object from its bytes."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage
from tests.simulation.asks import Ask, Memory
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.state import Settings
from tests.simulation.steps import Reply


class Asker:
    """A cluster, and what was learned of it. `node`: the broker that is asked."""

    def __init__(self, cluster: SimulatedCluster | None = None, node: int = 1, **settings: Any) -> None:
        self.cluster = cluster or SimulatedCluster(Settings(**settings))
        self.memory, self.node = Memory(self.cluster.now), node

    def begin(self, ask: Ask, node: int | None = None) -> Reply:
        """The reply, which may come later."""
        reply = self.cluster.submit(ask.request(self.memory), self.node if node is None else node)
        reply.then(lambda done: self._learn(ask, done))
        return reply

    def __call__(self, ask: Ask, node: int | None = None) -> Any:
        """The answer, which must come at once."""
        reply = self.begin(ask, node)
        assert reply.ended
        assert not reply.lost
        return reply.answer

    def _learn(self, ask: Ask, reply: Reply) -> None:
        if not reply.lost:
            assert_as_decoded(reply.answer)
            ask.learn(self.memory, reply.answer)


def assert_as_decoded(answer: Any) -> None:
    """Encode it, decode it, and compare. Ferry's answer to Produce is no message of kafka-python, and has a test of its own."""
    if isinstance(answer, ApiMessage):
        version = answer.version
        decoded = type(answer).decode(answer.encode(version=version), version=version)
        assert decoded == answer, f"{decoded}, not {answer}"
