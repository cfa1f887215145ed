"""Taking a flow over, and holding it: the broker's compare-and-set on transactional ids.

Order matters. A run first inits the flow's run id without conditions; only then it reads the flow record, inits every lane id ever used
without conditions, and writes the flow record with the number of them (under the run id, so an older run can no longer write it). A run
whose plan needs more lanes first writes the record with their number, then inits them, and proves the run id before it uses them: a newer
run either finds them in the record, or began before it was written, and then the write is refused.
From then on each id is only ever re-inited with the pair that is held. A lane whose pair died with its worker is taken back without
conditions, but only after the run id was re-inited with the held pair: an older run is refused there and gives up, so two runs never take
turns. And whoever took lanes proves the run id once more before it uses them (the flow record's write is such a proof): a run that was
superseded between proof and taking uses none. tests/model goes through all interleavings of this.

A proof is an EndTxn(abort) and an init, both with the held pair (Coordinator.settle): it does not disturb a newer holder, and only its
refusal says that an id is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent, Wakeup
from ferry.clusters.coordination import Coordinator, Fenced, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.leaders import Leaders
from ferry.clusters.partitions import TopicPartition
from ferry.copying.internal_writer import InternalWriter, KeyValue
from ferry.copying.lanes import number_of_lanes, run_transactional_id, transactional_id
from ferry.errors import ClusterUnreachable, Superseded, UnreadableRecord
from ferry.ledger.formats import place_of
from ferry.ledger.state import FLOW_KEY, FlowRecord, decode_state, encode_state

if TYPE_CHECKING:
    from ferry.config import Flow

T = TypeVar("T")

# Records written here are newest-per-key, so a transaction whose outcome is unknown is simply written again.
ATTEMPTS = 5


class FencedWriter:
    """One transactional id of the target, held by this process. Blocking; not for use inside a lane."""

    def __init__(self, flow: Flow, group: str, name: str, topics: Iterable[str]) -> None:
        from ferry.config import ClientRole  # noqa: PLC0415 - see InternalTopicReader

        self._loop = EventLoop()
        self._name = name
        self._flow = flow.name
        self._group = group
        self._topics = list(topics)
        self._connection = ClusterConnection(self._loop, flow.target, ClientRole.PRODUCER)
        self._coordinator = Coordinator(self._loop, self._connection, name, group)
        self.identity: ProducerIdentity

    def __enter__(self) -> FencedWriter:
        try:
            self._loop.run(self._connection.open)
            self.identity = self._call(self._coordinator.init)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._loop.close()

    def take(self, name: str) -> ProducerIdentity:
        """Init another transactional id without conditions: aborts what is open there and fences whoever holds it."""
        return self._call(Coordinator(self._loop, self._connection, name, self._group).init)

    def confirm(self, seconds: float | None = None) -> None:
        """Superseded unless this process still holds the id. ClusterUnreachable when the cluster does not say so in `seconds`.

        By default it is given the patience of every coordinator.
        """
        self._coordinator.patience_seconds = seconds
        try:
            self._renew()
        except (RequestNotSent, RequestLost) as problem:
            raise ClusterUnreachable(f"{self._name} could not prove that it is held: {problem}") from problem
        finally:
            self._coordinator.patience_seconds = None

    def _renew(self) -> None:
        self.identity = self._call(self._settle)

    def write(self, records: Mapping[TopicPartition, Sequence[KeyValue]]) -> None:
        """Write newest-per-key records in one transaction."""
        problem: Exception | None = None
        for _ in range(ATTEMPTS):
            try:
                if problem is not None:
                    self._connection.disconnect()
                    self._renew()
                return self._loop.run(self._write, records)
            except PositionsRefused as failure:
                if failure.right:
                    topic, _ = failure.partitions[0]
                    raise self._connection.denied(f"writing to {topic}", f"{failure.right} on topic {topic}") from failure
                problem = failure
            except (OutcomeUnknown, RequestLost, RequestNotSent, Fenced) as failure:
                problem = failure
        raise ClusterUnreachable(f"cluster {self._connection.alias}: {self._name} could not write: {problem}") from problem

    async def _write(self, records: Mapping[TopicPartition, Sequence[KeyValue]]) -> None:
        transactions_v2 = await self._connection.supports_transactions_v2()
        wakeup, leaders = Wakeup(self._loop), Leaders(self._connection, self._topics)
        await leaders.refresh()
        writer = InternalWriter(self._connection, leaders, wakeup, self._name, transactions_v2=transactions_v2)
        self.identity = await self._settle()  # sequences start at 0 with a new epoch
        writer.adopt(self.identity)
        if not transactions_v2:
            await self._coordinator.add_partitions(self.identity, records)
        await writer.append(records)
        self.identity = await self._coordinator.end(self.identity, committed=True, transactions_v2=transactions_v2)

    async def _settle(self) -> ProducerIdentity:
        transactions_v2 = await self._connection.supports_transactions_v2()
        return await self._coordinator.settle(self.identity, transactions_v2=transactions_v2)

    def _call(self, coroutine: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        try:
            return self._loop.run(coroutine, *arguments)
        except Fenced as problem:
            raise Superseded(f"flow {self._flow}: a newer run took over ({problem})") from problem


class RunLease:
    """A flow taken over by this process: its run id and every lane id. `record`: the newest flow record, with the most lanes ever."""

    def __init__(self, flow: Flow, group: str, topics: Iterable[str]) -> None:
        self._flow = flow
        self._state = flow.state_topic
        self.writer = FencedWriter(flow, group, run_transactional_id(flow.name), topics)
        self.record = FlowRecord(flow.name, 0)

    def __enter__(self) -> RunLease:
        self.writer.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.__exit__()

    def take_lanes(self) -> dict[int, ProducerIdentity]:
        """Fence every lane that was ever used, and as many as the flow has at least."""
        found = self._last_record()
        self.record = replace(found, flow=self._flow.name, lanes=max(found.lanes, number_of_lanes(0, self._flow.lanes)))
        return self._take(range(self.record.lanes))

    def take_more_lanes(self, lanes: int) -> dict[int, ProducerIdentity]:
        """Those below `lanes` that no run has used yet, after the record names them. Superseded when a newer run holds the flow."""
        more = range(self.record.lanes, lanes)
        if not more:
            return {}
        self.write_record(lanes=lanes)
        pairs = self._take(more)
        self.writer.confirm()
        return pairs

    def write_record(self, **changes: Any) -> None:
        """Write the flow record with these fields changed."""
        self.record = replace(self.record, **changes)
        self.writer.write({TopicPartition(self._state, 0): [encode_state(self.record)]})

    def retake(self, lane: int) -> ProducerIdentity:
        """Take back a lane whose pair is lost. Superseded when a newer run holds the flow."""
        self.writer.confirm()
        pair = self.writer.take(transactional_id(self._flow.name, lane))
        self.writer.confirm()
        return pair

    def _take(self, lanes: Iterable[int]) -> dict[int, ProducerIdentity]:
        return {lane: self.writer.take(transactional_id(self._flow.name, lane)) for lane in lanes}

    def _last_record(self) -> FlowRecord:
        """With the most lanes ever: from uncommitted records too, because it is read before the lanes' open transactions are aborted."""
        most = FlowRecord(self._flow.name, 0)
        with InternalTopicReader(self._flow.target, committed=False) as reader:
            for record in reader.read(self._state):
                if record.value is not None and record.key.startswith(FLOW_KEY):
                    entry = decode_state(record.key, record.value, place_of(self._flow.target, self._state))
                    if not isinstance(entry, FlowRecord):
                        raise UnreadableRecord(f"{self._state}: {record.key!r} is not a flow record")
                    most = replace(entry, lanes=max(most.lanes, entry.lanes))
        return most
