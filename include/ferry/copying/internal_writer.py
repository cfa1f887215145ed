"""Appends records to Ferry's own topics (ledger, state), as batches, within a transaction that the caller holds, or without one."""

from collections.abc import Mapping, Sequence

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.logs.internal_batches import KeyValue, internal_batches, split_batch
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.event_loop import Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.appender import Accepted, Appender
from ferry.errors import ClusterUnreachable, NotAuthorized
from ferry.wire.ranges import Range, Ranges, union

# The longest wait for an answer before the writer looks at postponed batches again.
IDLE_SECONDS = 0.05


class InternalWriter:
    """Writes under one transactional id (None: without transactions). Call `adopt` before each transaction."""

    def __init__(
        self, connection: ClusterConnection, leaders: Leaders, wakeup: Wakeup, transactional_id: str | None, *, transactions_v2: bool
    ) -> None:
        self._alias, self._leaders, self._wakeup = connection.alias, leaders, wakeup
        self._appender = Appender(
            connection, leaders, wakeup, transactional_id=transactional_id, transactions_v2=transactions_v2, halve=split_batch
        )

    def adopt(self, identity: ProducerIdentity) -> None:
        self._appender.adopt(identity)

    async def append(self, records: Mapping[TopicPartition, Sequence[KeyValue]]) -> dict[TopicPartition, Ranges]:
        """The offsets, when all are accepted. Fenced, OutcomeUnknown; NotAuthorized or ClusterUnreachable if a topic takes none."""
        places: dict[TopicPartition, list[Range]] = {key: [] for key in records}
        for key, pairs in records.items():
            for batch in internal_batches(pairs):
                self._appender.enqueue(key, batch)
        while any(self._appender.busy(key) for key in records):
            self._appender.pump()
            await self._wakeup.wait(IDLE_SECONDS)
            for answer in self._appender.take_answers():
                if isinstance(answer, Accepted):
                    places[answer.key].append((answer.base_offset, answer.base_offset + answer.batch.count))
            if self._appender.leaders_stale and self._leaders.rested:
                self._appender.leaders_stale = False
                await self._leaders.refresh()
        for key in records:
            refusal = self._appender.refusals.get(key)
            if refusal is not None:
                kind = NotAuthorized if refusal.denied else ClusterUnreachable
                raise kind(f"cluster {self._alias}: {key.topic}-{key.partition} takes no records: {refusal.problem}")
        return {key: union(found) for key, found in places.items()}
