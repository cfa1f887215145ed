"""The fence of a flow that copies without transactions, instead of transactional ids. Every broker that knows producer epochs keeps it.

A transactional id names one writer, and the transaction coordinator knows its producer id and epoch. Without the coordinator, the state
topic holds the producer id of each name (`Writer`), and the brokers that lead a partition fence by themselves: they refuse a batch whose
epoch is lower than one that they have seen of the same producer id (ProducerAppendInfo.checkProducerEpoch), in a transaction or not. A
client may raise its epoch itself, as Java's idempotent producer does (KIP-360). So:

- To take a name, a process gets a producer id of its own (InitProducerId without transactional id) and appends it to the state topic. Then
  it reads the topic, and fences every other producer id of the name: with the last epoch there is, it appends a tombstone of that record to
  the state topic, and one to every partition of the ledger. It repeats this until it finds no other: the holder may just have got another
  producer id. If two processes take a name at the same time, at least one of them is fenced.
- To prove that it still holds the name, a process appends its record again, with its next epoch. If it was fenced, the broker refuses that.
  Batches that it has sent with its older epochs and that are still under way are refused from then on, too.

Appending the record takes sequence number 0, so writes have the epoch after it.

The fence does not prevent two things. A fenced process may append records to a remote partition until its next receipts; receipts name the
offsets of such records (Receipt.repeated). And it may send one more OffsetCommit; but the heads count, not the group. See decision 14.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ferry import clock
from ferry.clusters.groups.committed_offsets import K, Offsets, commit_request
from ferry.clusters.groups.coordination import (
    COORDINATION_SECONDS,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    NO_IDENTITY,
    Coordinator,
    OutcomeUnknown,
    ProducerIdentity,
)
from ferry.clusters.logs.internal_batches import KeyValue
from ferry.clusters.net import error_policy
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.event_loop import EventLoop, Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.internal_writer import InternalWriter
from ferry.errors import ClusterUnreachable
from ferry.ledger.state import Writer, encode_state

# The highest epoch that the protocol has: a holder that was fenced with it cannot raise its own above it.
LAST_EPOCH = (1 << 15) - 1


def coordinator_of(loop: EventLoop, connection: ClusterConnection, flow: Flow, name: str, beside: Sequence[str] = ()) -> Coordinator:
    """The coordinator for the mode of the flow: it knows the writer of `name`, and takes positions. `beside`: as of Coordinator."""
    if flow.exactly_once:
        return Coordinator(loop, connection, name, flow.position_group, beside)
    return PlainCoordinator(loop, connection, flow, name)


class PlainCoordinator(Coordinator):
    """The methods of Coordinator for a flow without transactions: nothing is open, so nothing is aborted."""

    def __init__(self, loop: EventLoop, connection: ClusterConnection, flow: Flow, name: str) -> None:
        super().__init__(loop, connection, name, flow.position_group)
        self._name, self._ledger_topic, self._state = name, flow.ledger_topic, TopicPartition(flow.state_topic, 0)
        self._leaders = Leaders(connection, {flow.ledger_topic, flow.state_topic})

    @property
    def transactional_id(self) -> str | None:
        """None: records are appended outside of transactions."""
        return None

    async def transactions_v2(self) -> bool:
        """True: there is no transaction to which partitions had to be added."""
        return True

    async def look_up(self) -> None:
        """Does nothing: nobody coordinates the name."""

    async def init(self, identity: ProducerIdentity = NO_IDENTITY) -> ProducerIdentity:
        """Get the next epoch; with a pair only if nobody has fenced it (otherwise Fenced). Without one, fence the others afterwards."""
        known = identity if identity != NO_IDENTITY else (await self.idempotent_identity())._replace(epoch=-1)
        claimed = ProducerIdentity(known.producer_id, known.epoch + 1)
        following = claimed._replace(epoch=claimed.epoch + 1)
        if following.epoch >= LAST_EPOCH - 1:  # the next claim would have the epoch that fences
            following = await self.idempotent_identity()
        record = encode_state(Writer(self._name, following.producer_id))
        await self._append(claimed, lambda: {self._state: [record]})
        return following

    async def prove(self, identity: ProducerIdentity, *, transactions_v2: bool) -> ProducerIdentity:  # noqa: ARG002 - as of Coordinator
        """The next pair; Fenced if somebody else has taken the name."""
        return await self.init(identity)

    async def is_own(self) -> bool:
        """False: whoever takes the name gets a producer id of its own, so a request that is read late takes nothing."""
        return False

    async def fence(self, writer: Writer) -> None:
        """Make brokers refuse all further writes of this producer id to the state topic and the ledger. May be done twice."""
        key, _ = encode_state(writer)

        def tombstones() -> Mapping[TopicPartition, Sequence[KeyValue]]:
            shares = self._leaders.partitions(self._ledger_topic)
            if not shares and not self._leaders.is_gone(self._ledger_topic):
                raise RequestNotSent(f"the partitions of {self._ledger_topic} are not known")
            places = (self._state, *(TopicPartition(self._ledger_topic, number) for number in shares))
            return {place: [(key, None)] for place in places}

        await self._append(ProducerIdentity(writer.producer_id, LAST_EPOCH), tombstones)

    async def end(self, identity: ProducerIdentity, **_: bool) -> ProducerIdentity:
        """Nothing is open: everything counts as soon as it is acknowledged."""
        return identity

    async def commit_positions(self, identity: ProducerIdentity, positions: Offsets[K], *, transactions_v2: bool) -> None:  # noqa: ARG002 - as of Coordinator
        """Commit positions to the group. Ferry repeats a request without an answer: a late one may lower the offset; the head counts."""
        await self._commit_in_batches(error_policy.OFFSET_COMMIT, partial(commit_request, self._group), positions, repeatable=True)

    async def _append(self, identity: ProducerIdentity, records: Callable[[], Mapping[TopicPartition, Sequence[KeyValue]]]) -> None:
        """Append a batch to each partition, with sequence number 0: so it may be sent again. `records`: called when leaders were asked."""
        seconds = COORDINATION_SECONDS if self.patience_seconds is None else self.patience_seconds
        deadline, pauses = clock.monotonic() + seconds, doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        topics = {self._state.topic, self._ledger_topic}
        while True:
            try:
                await self._leaders.known(topics)
                writer = InternalWriter(self._connection, self._leaders, Wakeup(self._loop), None, transactions_v2=True)
                writer.adopt(identity)
                await writer.append(records())
            except (RequestNotSent, RequestLost, OutcomeUnknown) as problem:
                self._connection.require_answers()
                if clock.monotonic() > deadline:
                    what = f"taking the name {self._name} did not succeed in {seconds:.0f} s: {problem}"
                    raise ClusterUnreachable(f"cluster {self._connection.alias}: {what}") from problem
            else:
                return
            self._leaders.forget(topics)
            await self._loop.sleep(next(pauses))
