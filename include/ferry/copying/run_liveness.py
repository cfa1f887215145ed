"""Whether somebody holds a flow's run id and proves it, as the driver of a run that follows does every FOLLOW_LOOK_SECONDS.

A run that was killed left no result, so the runs topic says for ever that it goes on. But it no longer proves the id. With transactions, a
proof raises the epoch of the id on the target; without them, it appends the writer's record to the state topic again.
"""

from collections.abc import Hashable

from ferry import clock
from ferry.clusters.groups.coordination import Coordinator, ProducerIdentity
from ferry.clusters.net.connections import ClusterConnection
from ferry.config import ClientRole
from ferry.copying.fencing import read_writers
from ferry.ledger.open_flow import OpenFlow

# How often a run that follows proves that it still holds the flow.
FOLLOW_LOOK_SECONDS = 5.0
# A run that has not proven it for this time no longer follows, or its driver is very slow.
FOLLOW_ALIVE_SECONDS = 3 * FOLLOW_LOOK_SECONDS
# The pause between two questions.
STEP_SECONDS = 1.0


class RunProof:
    """Begins to look when it is made. Make it before this process takes the flow."""

    def __init__(self, opened: OpenFlow) -> None:
        self._opened, self._flow, self._began = opened, opened.flow, clock.monotonic()
        self._name = opened.flow.transactional_id("run")
        self._first = self._seen()

    def comes(self, seconds: float = FOLLOW_ALIVE_SECONDS) -> bool:
        """Whether the id is proven within `seconds` since the look began. Returns as soon as it is. True if the cluster does not say."""
        while self._first is not None and self._seen() == self._first:
            if clock.monotonic() - self._began > seconds:
                return False
            clock.sleep(STEP_SECONDS)
        return True

    def _seen(self) -> Hashable | None:
        if not self._flow.exactly_once:
            return frozenset(offset for writer, offset in read_writers(self._opened).items() if writer.writer == self._name)

        async def current(connection: ClusterConnection) -> ProducerIdentity | None:
            return await Coordinator(connection.loop, connection, self._name, self._flow.position_group).current()

        return self._opened.target.ask(current, role=ClientRole.PRODUCER)
