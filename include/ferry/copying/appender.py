"""Appends batches to remote partitions, in order, with several requests in flight.

A batch of a partition gets its sequence number when it is sent. These rules keep the order exact for all answers of brokers:

- the first batch of a partition in a transaction is sent alone, so that a leader that is not ready cannot accept only the second one;
- after a retriable answer nothing more is sent until every batch in flight is answered; then all batches that were not accepted are sent
  again, in order, with the same sequence numbers;
- an answer may leave open whether the log holds a batch (`unclear`). Then the batch is sent again, and the transaction is not committed
  before the batch is accepted. Otherwise the commit would make the batch visible, and the next transaction would append it once more with a
  new sequence number;
- answers are handled in the order in which the batches were sent;
- if the target refuses a batch for good, the partition stops at its last accepted batch (a batch that is too large is halved first). If
  the flow skips refused records (`skips`), the batch is halved until only refused records are left, and these are left out. A refusal
  that concerns every record, like a missing right, stops the partition in any case;
- OutcomeUnknown ends the transaction if an answer is lost or not understood, or if a batch is accepted after one that was not accepted:
  then nobody knows what the log holds.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.future import Future

from ferry import clock
from ferry.clusters.groups.coordination import NO_IDENTITY, Fenced, OutcomeUnknown, ProducerIdentity
from ferry.clusters.logs.fetching import without_leader
from ferry.clusters.logs.internal_batches import InternalBatch
from ferry.clusters.logs.producing import Answer, produce_answers, produce_request
from ferry.clusters.net.connections import ClusterConnection, RequestNotSent
from ferry.clusters.net.error_policy import Action
from ferry.clusters.net.event_loop import Wakeup
from ferry.clusters.net.leaders import Leaders
from ferry.clusters.net.outage import PATIENCE_SECONDS
from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.buffer_limits import IN_FLIGHT_BYTES, InFlightLimit
from ferry.errors import NotAuthorized, PartitionError
from ferry.wire.produce_batch import ProduceBatch
from ferry.wire.split import Indivisible
from ferry.wire.varint import Buffer

# Brokers remember the last five batches per producer and partition.
REQUESTS_IN_FLIGHT = 4
# More would make one request wait long for its answer.
REQUEST_BYTES = 4 << 20
# Bytes of a request beside its batches: its header with the transactional id, and for each partition the topic's name and three numbers.
HEADER_BYTES, PARTITION_BYTES = 1_000, 300
# After this the partition fails, and the others go on.
RETRY_SECONDS = PATIENCE_SECONDS
RETRY_PAUSE_SECONDS = 0.05
# A partition that accepts nothing for this time may have no leader: the others do not wait for it.
STUCK_SECONDS = 1.0
SEQUENCES = 1 << 31

# Copied records, or records of Ferry's own topics.
Appendable = ProduceBatch | InternalBatch


class Accepted(NamedTuple):
    """A batch that the target appended; its first record has downstream offset `base_offset`."""

    key: TopicPartition
    batch: Any
    base_offset: int


class RefusedRecord(NamedTuple):
    """A batch of one source record that the target refuses for good. It is left out."""

    key: TopicPartition
    batch: Any
    problem: str


class PartitionRefusal(NamedTuple):
    """Why a partition takes no more batches. `passing`: a later try may succeed. `denied`: a right is missing."""

    problem: str
    passing: bool
    denied: bool = False


@dataclass
class _Sent:
    batch: Appendable
    sequence: int
    answer: Answer | None = None


@dataclass
class _Queue:
    """One remote partition: batches that wait, batches in flight (oldest first), and the next sequence number."""

    key: TopicPartition
    waiting: deque[Appendable] = field(default_factory=deque)
    in_flight: deque[_Sent] = field(default_factory=deque)
    next_sequence: int = 0
    node: int = -1
    proven: bool = False
    rejected: list[Appendable] = field(default_factory=list)
    disturbed: bool = False  # a batch was not accepted: until all are answered, the log cannot hold one that was sent after it
    resume_sequence: int = 0
    unclear: set[int] = field(default_factory=set)  # batches that the log may hold although it did not accept them, by `id`
    troubled_since: float = 0.0
    not_before: float = 0.0

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.in_flight)

    def stuck(self, now: float) -> bool:
        return now - (self.troubled_since or now) > STUCK_SECONDS


class Appender:
    """Takes batches, and gives back accepted ones with their downstream offsets. It sends as one producer at a time."""

    def __init__(
        self,
        connection: ClusterConnection,
        leaders: Leaders,
        wakeup: Wakeup,
        *,
        transactional_id: str | None,
        transactions_v2: bool,
        halve: Callable[[Any], tuple[Any, Any]],
        skips: bool = False,
        in_flight_bytes: int = IN_FLIGHT_BYTES,
    ) -> None:
        self._connection, self._leaders, self._wakeup = connection, leaders, wakeup
        self._transactional_id, self._transactions_v2 = transactional_id, transactions_v2
        self._halve, self._skips = halve, skips
        self._queues: dict[TopicPartition, _Queue] = {}
        self._active: dict[TopicPartition, _Queue] = {}
        self._sent_again: dict[TopicPartition, _Queue] = {}  # that ever had a batch to send again: only they may have unclear ones
        self.refusals: dict[TopicPartition, PartitionRefusal] = {}  # partitions that take no more batches
        self._answers: deque[tuple[list[tuple[_Queue, _Sent]], Future]] = deque()
        self._in_flight_limits: defaultdict[int, InFlightLimit] = defaultdict(lambda: InFlightLimit(in_flight_bytes))
        self._limit = connection.request_limit  # only where the file says so: some services close the connection after a larger request
        self.identity = NO_IDENTITY
        self.waiting_bytes = self.own_bytes = 0
        self.leaders_stale = False

    def adopt(self, identity: ProducerIdentity) -> None:
        """Send as this producer from now on. Sequence numbers restart if it differs from the last one."""
        if identity != self.identity:
            for queue in self._queues.values():
                queue.next_sequence, queue.proven = 0, False
        self.identity = identity

    def enqueue(self, key: TopicPartition, batch: Appendable) -> None:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(key)
        if key not in self.refusals:
            batches = self._sendable_parts(queue, batch)
            queue.waiting.extend(batches)
            self.waiting_bytes += sum(part.size for part in batches)
            self.own_bytes += sum(part.own for part in batches)
            if batches:
                self._active[key] = queue

    def _sendable_parts(self, queue: _Queue, batch: Appendable) -> list[Appendable]:
        """The batch in parts that fit into a request each. If a record does not, the partition takes no more batches."""
        if self._fits(batch, 0, 0):
            return [batch]
        try:
            halves = self._halve(batch)
        except ValueError as why:
            problem = f"a batch of {batch.size:,} bytes does not fit into max.request.size={self._limit:,}, and cannot be halved: {why}"
            self._refuse(queue, PartitionRefusal(problem, passing=False))
            return []
        return [part for half in halves for part in self._sendable_parts(queue, half)]

    def _fits(self, batch: Appendable, partitions: int, size: int) -> bool:
        """Whether a request has room for a batch, if it holds batches of `partitions` partitions with `size` bytes already."""
        return self._limit is None or HEADER_BYTES + (partitions + 1) * PARTITION_BYTES + size + batch.size <= self._limit

    def busy(self, key: TopicPartition) -> bool:
        """Whether batches of this partition wait or are in flight."""
        return key in self._active

    @property
    def idle(self) -> bool:
        """Whether no partition is busy."""
        return not self._active

    @property
    def sending(self) -> bool:
        """Whether batches wait that the target may take soon."""
        now = clock.monotonic()
        return any(queue.waiting and not queue.stuck(now) for queue in self._active.values())

    @property
    def unanswered(self) -> int:
        """Requests without an answer, or with one that `take_answers` has not given. Until it is 0, nobody knows what the log holds."""
        return sum(limit.requests for limit in self._in_flight_limits.values()) + len(self._answers)

    def in_flight(self) -> dict[TopicPartition, list[Any]]:
        """The batches in flight, in order, if nothing waits and nothing was sent again; otherwise none."""
        if any(queue.waiting or queue.disturbed or queue.unclear for queue in self._active.values()):
            return {}
        return {key: [sent.batch for sent in queue.in_flight] for key, queue in self._active.items()}

    @property
    def unclear(self) -> list[TopicPartition]:
        return [key for key, queue in self._sent_again.items() if queue.unclear]

    def sendable(self) -> list[TopicPartition]:
        """Partitions that have a batch to send now. Before KIP-890 they must be added to the transaction first."""
        now = clock.monotonic()
        return [key for key, queue in self._active.items() if self._ready(queue, now)]

    def pump(self, only: Callable[[TopicPartition], bool] | None = None) -> int:
        """Send what may be sent now. Returns the bytes sent. A broker that asked for a pause gets nothing during it.

        `only`: whether to send to a partition now; called for those that have a batch to send, the one that has waited longest first.
        """
        now = clock.monotonic()
        by_node: dict[int, list[_Queue]] = {}
        for key, queue in list(self._active.items()):
            if self._ready(queue, now):
                node = self._leaders.of(*key).node
                if node < 0:
                    self._without_leader(queue)
                # If the leader has moved, batches wait for the answers of the old leader.
                elif (node == queue.node or not queue.in_flight) and not self._connection.throttled(node) and (only is None or only(key)):
                    queue.node = node
                    by_node.setdefault(node, []).append(queue)
        return sum(self._send_to(node, queues) for node, queues in by_node.items())

    def _without_leader(self, queue: _Queue) -> None:
        match without_leader(self._connection, self._leaders, *queue.key):
            case NotAuthorized() as problem:
                self._refuse(queue, PartitionRefusal(str(problem), passing=False, denied=True))
            case PartitionError(problem=told):
                self._refuse(queue, PartitionRefusal(told, passing=False))
            case _:
                self.postpone(queue.key, "no leader")

    def _refuse(self, queue: _Queue, refusal: PartitionRefusal) -> None:
        self.refusals.setdefault(queue.key, refusal)
        if not queue.in_flight:
            self._regroup(queue)

    def together(self, key: TopicPartition) -> tuple[TopicPartition, ...]:
        """The partitions that must be in the same transaction as the batches that wait for this one."""
        return (key,)

    def refused(self) -> Mapping[TopicPartition, PartitionRefusal]:
        """Why nothing more is appended, by the partition that `enqueue` was given."""
        return self.refusals

    def postpone(self, key: TopicPartition, problem: str) -> None:
        """Send nothing to this partition for RETRY_PAUSE_SECONDS. It is refused after RETRY_SECONDS without an accepted batch."""
        queue, now = self._queues[key], clock.monotonic()
        queue.troubled_since = queue.troubled_since or now
        queue.not_before = now + RETRY_PAUSE_SECONDS
        self.leaders_stale = True
        if now - queue.troubled_since > RETRY_SECONDS:
            self._refuse(queue, PartitionRefusal(f"not accepted for {RETRY_SECONDS:.0f} s: {problem}", passing=True))

    def take_answers(self) -> Iterator[Accepted | RefusedRecord]:
        """Handle the answers that have arrived, in order. Fenced and OutcomeUnknown end the transaction."""
        while self._answers:
            sent, future = self._answers.popleft()
            if future.exception is not None:
                failure = self._connection.classified(future.exception)
                if not isinstance(failure, RequestNotSent):
                    raise OutcomeUnknown(f"Produce: {failure}")
                answers: dict[tuple[str, int], Answer] = {queue.key: Answer(Action.LEADER, -1, str(failure)) for queue, _ in sent}
            else:
                answers = produce_answers(future.value, self._leaders)
            for queue, item in sent:
                item.answer = answers.get(queue.key, Answer(Action.UNKNOWN, -1, "no answer for this partition"))
                # A request that could not be sent fails at once, before earlier requests are answered: take the answers in sending order.
                while queue.in_flight and (answer := queue.in_flight[0].answer) is not None:
                    yield from self._take_answer(queue, queue.in_flight.popleft(), answer)

    def _take_answer(self, queue: _Queue, item: _Sent, answer: Answer) -> Iterator[Accepted | RefusedRecord]:
        first = not queue.disturbed
        if first:
            queue.resume_sequence = item.sequence
        queue.disturbed = answer.action is not Action.GO_ON or queue.disturbed
        match answer.action:
            case Action.GO_ON if first:
                queue.proven, queue.troubled_since = True, 0.0
                queue.unclear.discard(id(item.batch))
                self.own_bytes -= item.batch.own
                yield Accepted(queue.key, item.batch, answer.base_offset)
            case Action.FENCED:
                raise Fenced(f"Produce to {queue.key[0]}-{queue.key[1]}: {answer.problem}")
            case Action.LEADER:
                queue.rejected.append(item.batch)
                queue.unclear.update([id(item.batch)] if answer.unclear else ())
                self._sent_again[queue.key] = queue
                self.postpone(queue.key, answer.problem)
            case Action.OUT_OF_ORDER if not first:
                queue.rejected.append(item.batch)
            case Action.DENIED:
                queue.rejected.append(item.batch)
                granting = self._connection.granting(answer.right.format(topic=queue.key[0], id=self._transactional_id))
                self.refusals.setdefault(queue.key, PartitionRefusal(f"{answer.problem}: {granting}", passing=False, denied=True))
            case Action.TOO_LARGE | Action.RECORD_REFUSED | Action.REFUSED:
                if self._is_left_out(queue, item.batch, answer, first=first):
                    self.own_bytes -= item.batch.own
                    yield RefusedRecord(queue.key, item.batch, answer.problem)
            case _:
                problem = answer.problem or "the broker accepted it after a batch that it had not accepted"
                raise OutcomeUnknown(f"Produce to {queue.key[0]}-{queue.key[1]}: {problem}", queue.key)
        if not queue.in_flight:
            self._regroup(queue)

    def _is_left_out(self, queue: _Queue, batch: Appendable, answer: Answer, *, first: bool) -> bool:
        """Handle a batch that the target refused for good: halve it; or leave it out (True); or stop the partition."""
        halves_it = answer.action is Action.TOO_LARGE or (self._skips and answer.action is Action.RECORD_REFUSED)
        problem = answer.problem
        indivisible = batch.count == 1
        if halves_it and not indivisible:
            try:
                halves = self._halve(batch)
            except ValueError as why:  # one source record, or records that cannot be read
                problem = f"{problem}; it cannot be halved: {why}"
                indivisible = isinstance(why, Indivisible)
            else:
                queue.rejected.extend(halves)
                self.own_bytes += sum(half.own for half in halves) - batch.own
                return False
        if halves_it and self._skips and indivisible and first:
            return True
        queue.rejected.append(batch)
        # If an earlier batch was not accepted either, this one is sent again after it, and refused again.
        if not (halves_it and self._skips and indivisible):
            self.refusals.setdefault(queue.key, PartitionRefusal(problem, passing=False))
        return False

    def _regroup(self, queue: _Queue) -> None:
        """All answers are here: put the batches that were not accepted back to the front, with their sequence numbers."""
        if queue.disturbed:
            self.waiting_bytes += sum(batch.size for batch in queue.rejected)
            queue.next_sequence = queue.resume_sequence
            queue.waiting.extendleft(reversed(queue.rejected))
            queue.rejected, queue.disturbed = [], False
        if queue.key in self.refusals:
            self.waiting_bytes -= sum(batch.size for batch in queue.waiting)
            self.own_bytes -= sum(batch.own for batch in queue.waiting)
            queue.waiting.clear()
        if not queue.busy:
            self._active.pop(queue.key, None)

    def _ready(self, queue: _Queue, now: float) -> bool:
        if not queue.waiting or queue.disturbed or queue.key in self.refusals or now < queue.not_before:
            return False
        return queue.proven or not queue.in_flight

    def _send_to(self, node: int, queues: list[_Queue]) -> int:
        total = 0
        limit = self._in_flight_limits[node]
        while limit.requests < REQUESTS_IN_FLIGHT and (room := limit.room) > 0:
            chosen: list[tuple[_Queue, _Sent]] = []
            payloads: list[tuple[str, int, tuple[Buffer, ...]]] = []
            size = 0
            for queue in queues:
                if size >= min(REQUEST_BYTES, room):
                    break
                if not queue.waiting or (not queue.proven and queue.in_flight) or not self._fits(queue.waiting[0], len(chosen), size):
                    continue
                batch = queue.waiting.popleft()
                item = _Sent(batch, queue.next_sequence)
                payloads.append((*queue.key, batch.encode(*self.identity, item.sequence, self._transactional_id is not None)))
                queue.next_sequence = (queue.next_sequence + batch.count) % SEQUENCES
                queue.in_flight.append(item)
                self._active[queue.key] = self._active.pop(queue.key)  # the other partitions come first in the next pump
                chosen.append((queue, item))
                size += batch.size
            if not chosen:
                break
            queues.append(queues.pop(0))  # the next request starts with another partition
            limit.sent(size)
            self._submit(node, size, chosen, payloads)
            self.waiting_bytes -= size
            total += size
        return total

    def _submit(
        self, node: int, size: int, chosen: list[tuple[_Queue, _Sent]], payloads: list[tuple[str, int, tuple[Buffer, ...]]]
    ) -> None:
        request = produce_request(payloads, self._leaders, self._transactional_id, transactions_v2=self._transactions_v2)
        future = self._connection.submit(request, node)

        def answered(_: Any) -> None:
            pause_ms = future.value.throttle_time_ms if future.exception is None else 0
            self._in_flight_limits[node].answered(size, pause_ms / 1000)
            self._answers.append((chosen, future))
            self._wakeup.fire()

        future.add_both(answered)
