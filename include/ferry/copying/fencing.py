"""Takes a flow over from older runs, and keeps it, by transactional ids: Kafka lets only one producer hold an id.

To *take* an id is InitProducerId without conditions: it fences the older holder. To *prove* an id is EndTxn(abort) and InitProducerId
with the producer id and epoch that this process holds (Coordinator.prove): it does not disturb a newer holder, and only a refusal means
that the id is lost. The order matters:

1. A run takes the flow's run id.
2. Then it reads the flow record, takes every lane id that was ever used, and writes the record with their number. It writes under the run
   id, so an older run can no longer write the record. It reads again up to its own record: a leader that was replaced without knowing it
   may have hidden older ones. A log that holds this record holds all older ones, too. A backfill reads the ledger so, too.
3. If the plan needs more lanes, the run first writes their number, then takes their ids, and proves the run id before it uses them. A newer
   run either finds them in the record, or has begun before, and then the write is refused.
4. A lane whose worker died is taken back, but only after the run id was proven: an older run is refused there and ends, so two runs never
   take a lane from each other in turns.
5. After it took lanes, a run proves the run id once more before it uses them (writing the flow record proves it too). So a run that was
   superseded in between uses none of them.

tests/drills/model goes through all interleavings of these steps.

A flow that copies without transactions does the same with its writers (plain_coordinator.py), which have the names of the ids. If the last
run was of the other mode, the run fences what that mode left, after it has taken the run id of its own mode: a run of the other mode that
begins meanwhile finds it in the state topic.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self, TypeVar

from ferry.clusters.groups.coordination import Coordinator, Fenced, OutcomeUnknown, PositionsRefused, ProducerIdentity
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, Question, Wakeup, ended, together
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.config import ClientRole
from ferry.copying.internal_writer import InternalWriter
from ferry.copying.lanes import number_of_lanes
from ferry.copying.plain_coordinator import PlainCoordinator, coordinator_of
from ferry.errors import ClusterUnreachable, FenceLost, NotAuthorized, Superseded, UnreadableRecord
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.state import FLOW_KEY, WRITER_KEY, FlowRecord, Writer, decode_state, encode_state
from ferry.wire.ranges import Ranges

log = logging.getLogger(__name__)

T = TypeVar("T")
Records = Mapping[TopicPartition, Sequence[KeyValue]]
# More records of a transaction, by the offsets of those before.
Then = Callable[[Mapping[TopicPartition, Ranges]], Records]

ATTEMPTS = 5
# After the first round, only a holder that got another producer id at that moment is left.
FENCE_ROUNDS = 10


class FencedWriter:
    """One transactional id on the target, held by this process. Its calls block: not for use inside a lane."""

    def __init__(self, opened: OpenFlow, name: str, beside: Sequence[str] = ()) -> None:
        """`beside`: other ids that are taken soon."""
        self._opened, self._flow, self._name, self._beside = opened, opened.flow, name, beside
        self._scope = ExitStack()
        self._loop: EventLoop
        self._connection: ClusterConnection
        self._coordinator: Coordinator
        self._leaders: Leaders
        self._looked_up: Asked[None] | None = None
        self.identity: ProducerIdentity
        self._unused = False  # the identity is new: sequences begin at 0

    def look_up(self) -> None:
        """Begin to look for the coordinators, if the caller asks other things before it takes the id."""

        async def ask(connection: ClusterConnection) -> None:
            await coordinator_of(connection.loop, connection, self._flow, self._name, self._beside).look_up()

        self._looked_up = self._opened.target.begin_asking(ask, role=ClientRole.PRODUCER)

    def __enter__(self) -> Self:
        with ExitStack() as scope:
            client = scope.enter_context(self._opened.target.connected(ClientRole.PRODUCER))
            self._client, self._loop, self._connection = client, client.loop, client.connection
            self._coordinator = coordinator_of(self._loop, self._connection, self._flow, self._name, self._beside)
            self._leaders = Leaders(self._connection, {self._flow.ledger_topic, self._flow.state_topic})
            if self._looked_up is not None:
                self._looked_up.answer()
            self.identity, self._unused = self._call(self._init), True
            if not self._flow.exactly_once:
                self._fence_writers({self._name: self.identity})
            self._scope = scope.pop_all()
        return self

    async def _init(self) -> ProducerIdentity:
        """Take the id, and learn the leaders meanwhile."""
        learned = self._loop.start(self._leaders.refresh)
        try:
            return await self._coordinator.init()
        finally:
            await ended([learned])  # leaders that are not known yet are asked for when they are needed

    def __exit__(self, *details: Any) -> None:
        self._scope.__exit__(*details)

    def take(self, names: Sequence[str]) -> list[ProducerIdentity]:
        """Take other transactional ids, side by side: aborts their open transactions, and fences their holders."""
        coordinators = [coordinator_of(self._loop, self._connection, self._flow, name) for name in names]
        pairs = self._call(self._init_all, coordinators)
        if not self._flow.exactly_once:
            self._fence_writers(dict(zip(names, pairs, strict=True)))
        return pairs

    async def _init_all(self, coordinators: Sequence[Coordinator]) -> list[ProducerIdentity]:
        return await together([self._loop.start(coordinator.init) for coordinator in coordinators])

    def _fence_writers(self, held: Mapping[str, ProducerIdentity] | None = None) -> None:
        """Fence all others that hold these names (None: any name of the flow) without transactions.

        A holder that is alive may get another producer id meanwhile: so this looks again until nobody is left."""
        for _ in range(FENCE_ROUNDS):
            others = [
                writer
                for writer in read_writers(self._opened)
                if held is None or (writer.writer in held and writer.producer_id != held[writer.writer].producer_id)
            ]
            if not others:
                return
            self._call(self._fence_all, others)
        raise ClusterUnreachable(f"cluster {self._connection.alias}: {self._flow.state_topic} still shows writers that were fenced")

    async def _fence_all(self, writers: Sequence[Writer]) -> None:
        plain = PlainCoordinator(self._loop, self._connection, self._flow, self._name)
        await together([self._loop.start(plain.fence, writer) for writer in writers])

    def confirm(self, seconds: float | None = None) -> None:
        """Prove that this process still holds the id; else Superseded. ClusterUnreachable after `seconds` (None: COORDINATION_SECONDS).

        With `seconds`, lanes have waited for the cluster in vain, perhaps over the same connection.
        """
        if seconds is not None:
            self._connection.begin_anew()
        self._coordinator.patience_seconds = seconds
        try:
            self.identity, self._unused = self._call(self._prove), True
        except (RequestNotSent, RequestLost) as problem:
            raise ClusterUnreachable(f"{self._name} could not prove that it is held: {problem}") from problem
        finally:
            self._coordinator.patience_seconds = None

    def write(self, records: Records, *then: Then) -> None:
        """Write records in one transaction; after an unknown outcome again: the newest of a key counts. Each attempt calls `then` anew."""
        problem: Exception | None = None
        for _ in range(ATTEMPTS):
            try:
                if problem is not None:
                    self._connection.disconnect()
                    self._leaders.forget({topic for topic, _ in records})
                    self.identity, self._unused = self._call(self._prove), True
                return self._client.run(self._write, records, then)
            except PositionsRefused as failure:
                if failure.right:
                    topic, _ = failure.partitions[0]
                    raise self._connection.denied(f"writing to {topic}", f"{failure.right} on topic {topic}") from failure
                problem = failure
            except (OutcomeUnknown, RequestLost, RequestNotSent, Fenced) as failure:
                problem = failure
        raise ClusterUnreachable(f"cluster {self._connection.alias}: {self._name} could not write: {problem}") from problem

    async def _write(self, records: Records, then: Iterable[Then]) -> None:
        transactions_v2, transactional_id = await self._coordinator.transactions_v2(), self._coordinator.transactional_id
        writer = InternalWriter(self._connection, self._leaders, Wakeup(self._loop), transactional_id, transactions_v2=transactions_v2)
        if not self._unused:
            self.identity = await self._prove()
        self._unused = False
        writer.adopt(self.identity)
        places: Mapping[TopicPartition, Ranges] = {}
        for following in (lambda _: records, *then):
            wanted = following(places)
            await self._leaders.known({topic for topic, _ in wanted})
            if not transactions_v2:
                await self._coordinator.add_partitions(self.identity, wanted)
            places = await writer.append(wanted)
            self._opened.written |= {key: end for key, spans in places.items() for _, end in spans}
        self.identity = await self._coordinator.end(self.identity, committed=True, transactions_v2=transactions_v2)

    async def _prove(self) -> ProducerIdentity:
        return await self._coordinator.prove(self.identity, transactions_v2=await self._coordinator.transactions_v2())

    def _call(self, coroutine: Question[T], *arguments: Any) -> T:
        try:
            return self._client.run(coroutine, *arguments)
        except Fenced as problem:
            if self._client.run(self._coordinator.is_own):
                why = "a request of this process or of an older run was read late, or a transaction timed out"
                raise FenceLost(
                    f"cluster {self._connection.alias}: nobody else has taken {self._name}, but it was fenced: {why}"
                ) from problem
            raise Superseded("a newer run took over (or a command that sets positions, such as ferry seed)") from problem


class RunLease(FencedWriter):
    """A flow that this process holds: its run id and every lane id. `record`: the newest flow record, with the most lanes ever."""

    def __init__(self, opened: OpenFlow) -> None:
        flow = opened.flow
        lanes = [flow.transactional_id(lane) for lane in range(number_of_lanes(0, flow.lanes))]
        super().__init__(opened, flow.transactional_id("run"), lanes)
        self.record = FlowRecord(flow.name, 0)
        self._has_writers = False  # the state topic names other writers than this one, fenced or not

    def take_lanes(self) -> dict[int, ProducerIdentity]:
        """Take every lane that was ever used, and at least as many as the flow has. If the last run was of the other mode, fence that."""
        found = self.last_record()
        if self._flow.exactly_once and self._has_writers:
            self._fence_writers()
        elif not self._flow.exactly_once and found.lanes and (found.exactly_once or not self._has_writers):
            self._fence_transactions(found.lanes)  # without writers, an older release copied, which wrote receipts in transactions
        self.record = replace(found, flow=self._flow.name, lanes=max(found.lanes, number_of_lanes(0, self._flow.lanes)))
        return self._identities(range(self.record.lanes))

    def take_more_lanes(self, lanes: int) -> dict[int, ProducerIdentity]:
        """Take the lanes below `lanes` that no run has used yet, after writing the record. Superseded if a newer run holds the flow."""
        more = range(self.record.lanes, lanes)
        if not more:
            return {}
        self.write_record(lanes=lanes)
        pairs = self._identities(more)
        self.confirm()
        return pairs

    def write_record(self, **changes: Any) -> None:
        self.record = replace(self.record, **changes)
        self.write({TopicPartition(self._flow.state_topic, 0): [encode_state(self.record)]})

    def mark_ledger(self) -> None:
        """Write to every partition of the ledger, so that a read of it cannot miss what was written before (OpenFlow.written).

        It removes a key that no receipt has. So no reader notices it, of any version of Ferry, and compaction removes it.
        """
        ledger = self._flow.ledger_topic
        partitions = self._opened.target.reader().partitions(ledger)
        self.write({TopicPartition(ledger, number): [(b"mark", None)] for number in partitions})

    def retake(self, lanes: Collection[int]) -> dict[int, ProducerIdentity]:
        """Take back lanes whose workers are lost. Superseded if a newer run holds the flow."""
        self.confirm()
        pairs = self._identities(lanes)
        self.confirm()
        return pairs

    def _identities(self, lanes: Collection[int]) -> dict[int, ProducerIdentity]:
        return dict(zip(lanes, self.take([self._flow.transactional_id(lane) for lane in lanes]), strict=True))

    def _fence_transactions(self, lanes: int) -> None:
        """Fence runs that copy in transactions. If the target refuses their ids to this user, it refuses them to those runs, too: then they
        can commit nothing any more, and the broker aborts what they have left open."""
        names = [self._flow.transactional_id(holder) for holder in ("run", "upkeep", "recovery", *range(lanes))]
        group = self._flow.position_group
        try:
            self._call(self._init_all, [Coordinator(self._loop, self._connection, name, group) for name in names])
        except NotAuthorized as problem:
            log.warning("flow %s: earlier runs copied in transactions, and cannot be fenced: %s", self._flow.name, problem)

    def last_record(self) -> FlowRecord:
        """The newest flow record, with the most lanes of all of them. Uncommitted ones count: their lanes may have open transactions."""
        state, most = self._flow.state_topic, FlowRecord(self._flow.name, 0, tells_start=self._flow.start != "earliest")
        own, _ = encode_state(Writer(self._name, self.identity.producer_id))
        for record in self._opened.target.reader(committed=False).read(state, least=self._opened.written):
            self._has_writers = self._has_writers or (record.key.startswith(WRITER_KEY) and record.key != own)
            if record.value is not None and record.key.startswith(FLOW_KEY):
                entry = decode_state(record.key, record.value, place_of(self._flow.target, state))
                if not isinstance(entry, FlowRecord):
                    raise UnreadableRecord(f"{state}: {record.key!r} is not a flow record")
                most = replace(entry, lanes=max(most.lanes, entry.lanes))
        return most


def read_writers(opened: OpenFlow) -> dict[Writer, int]:
    """The writers without transactions that were not fenced, each with the offset of its newest proof."""
    topic, where = opened.flow.state_topic, place_of(opened.flow.target, opened.flow.state_topic)
    records = opened.target.reader(committed=False).read(topic)
    newest = {record.key: record for record in records if record.key.startswith(WRITER_KEY)}
    there = ((record, decode_state(record.key, record.value, where)) for record in newest.values() if record.value is not None)
    return {entry: record.offset for record, entry in there if isinstance(entry, Writer)}
