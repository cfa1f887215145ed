"""Appending batches to remote partitions, in order, several requests in flight.

Per partition, sequences are given out when a batch is sent. Rules that keep the order exact whatever the brokers answer:

- the first batch of a partition in a transaction travels alone, so that a leader that is not ready cannot accept the second one only;
- after a retriable answer nothing more is sent until every batch in flight is answered; then all that were not accepted go again, in
  order, with the same sequences;
- an answer may leave open whether the log holds a batch (`unclear`): until it was sent again and accepted, its transaction must not be
  committed, because the commit would show it, and the next transaction, with new sequences, append it once more;
- answers are acted on in the order of sending, whatever the order in which they come;
- a definite refusal stops the partition at its last accepted batch (a batch that is too large is halved first). Where the flow skips
  refused records (`skips`), the batch is halved down to them, and each is left out; what no record gets past (a missing permission)
  stops the partition all the same;
- a batch that is accepted behind one that was not, a lost answer, or an answer that is not understood leaves the log's content open:
  OutcomeUnknown, and the transaction is abandoned.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kafka.future import Future

from ferry.clusters.answers import METADATA, Action
from ferry.clusters.connections import ClusterConnection, RequestNotSent, Wakeup
from ferry.clusters.coordination import NO_IDENTITY, Fenced, OutcomeUnknown, ProducerIdentity
from ferry.clusters.frames import Buffer
from ferry.clusters.leaders import Leaders
from ferry.clusters.producing import Answer, produce_answers, produce_request
from ferry.clusters.unreachable import PATIENCE_SECONDS
from ferry.copying.buffer_limits import WINDOW_BYTES
from ferry.copying.inflight_limit import InFlightLimit
from ferry.wire.split import Indivisible

PartitionKey = tuple[str, int]  # remote topic, partition

# Below the five that brokers remember per producer and partition.
REQUESTS_IN_FLIGHT = 4
# More would make one request wait long for its answer.
REQUEST_BYTES = 4 << 20
# Afterwards the partition is reported and the others go on.
RETRY_SECONDS = PATIENCE_SECONDS
RETRY_PAUSE_SECONDS = 0.05
SEQUENCES = 1 << 31


class Appendable(Protocol):
    """One batch that can be encoded for any producer. `size` in bytes on the wire, `own` in memory beside what it was fetched with."""

    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def own(self) -> int: ...
    def encode(self, producer_id: int, epoch: int, base_sequence: int, transactional: bool) -> tuple[Buffer, ...]: ...


class Accepted(NamedTuple):
    """A batch that the target appended; its first record has downstream offset `base_offset`."""

    key: PartitionKey
    batch: Any
    base_offset: int


class Refused(NamedTuple):
    """A batch of one source record that the target refuses for good, and that is left out."""

    key: PartitionKey
    batch: Any
    problem: str


class Refusal(NamedTuple):
    """Why a partition takes no more; `passing` when trying again later may succeed, `denied` when a right is missing."""

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
    """One remote partition: what waits, what is in flight (oldest first), and the next sequence."""

    key: PartitionKey
    waiting: deque[Appendable] = field(default_factory=deque)
    in_flight: deque[_Sent] = field(default_factory=deque)
    next_sequence: int = 0
    node: int = -1
    proven: bool = False
    rejected: list[Appendable] = field(default_factory=list)
    # Something was not accepted: until all is answered, what was sent behind it cannot have been appended.
    disturbed: bool = False
    resume_sequence: int = 0
    # By identity, batches that the log may hold though they were not accepted.
    unclear: set[int] = field(default_factory=set)
    refusal: Refusal | None = None
    troubled_since: float = 0.0
    not_before: float = 0.0

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.in_flight)


class Appender:
    """Batches in, accepted batches with their downstream offsets out. One producer identity at a time."""

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
        window: int = WINDOW_BYTES,
    ) -> None:
        self._connection = connection
        self._leaders = leaders
        self._wakeup = wakeup
        self._transactional_id = transactional_id
        self._transactions_v2 = transactions_v2
        self._halve = halve
        self._skips = skips
        self._queues: dict[PartitionKey, _Queue] = {}
        self._active: dict[PartitionKey, _Queue] = {}
        self._answers: deque[tuple[list[tuple[_Queue, _Sent]], Future]] = deque()
        self._requests: dict[int, int] = {}
        self._windows: defaultdict[int, InFlightLimit] = defaultdict(lambda: InFlightLimit(window))
        self.identity = NO_IDENTITY
        self.waiting_bytes = 0
        self.own_bytes = 0
        self.leaders_stale = False

    def adopt(self, identity: ProducerIdentity) -> None:
        """Go on with this pair. Sequences restart whenever it differs from the last one."""
        if identity != self.identity:
            for queue in self._queues.values():
                queue.next_sequence, queue.proven = 0, False
        self.identity = identity

    def enqueue(self, key: PartitionKey, batch: Appendable) -> None:
        """Append `batch` behind what was enqueued for the partition before."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(key)
        if queue.refusal is None:
            queue.waiting.append(batch)
            self.waiting_bytes += batch.size
            self.own_bytes += batch.own
            self._active[key] = queue

    def busy(self, key: PartitionKey) -> bool:
        """Whether batches of this partition wait or are in flight."""
        return key in self._active

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return sum(self._requests.values())

    def refusal(self, key: PartitionKey) -> Refusal | None:
        """Why the partition takes no more, if so."""
        queue = self._queues.get(key)
        return queue.refusal if queue else None

    @property
    def unclear(self) -> list[PartitionKey]:
        """Partitions whose log may hold batches that were not accepted: they are to be sent again before the transaction is committed."""
        return [key for key, queue in self._queues.items() if queue.unclear]

    def sendable(self) -> list[PartitionKey]:
        """Partitions that could send now, for registering them with the transaction first."""
        now = time.monotonic()
        return [key for key, queue in self._active.items() if self._ready(queue, now)]

    def pump(self, only: Callable[[PartitionKey], bool] | None = None) -> int:
        """Send what may be sent now; the bytes that left. Brokers that asked for a pause get it.

        `only` restricts the partitions: it is asked of those that could be sent, the one that has waited longest first.
        """
        now = time.monotonic()
        by_node: dict[int, list[_Queue]] = {}
        for key, queue in list(self._active.items()):
            if self._ready(queue, now):
                node = self._leaders.of(*key).node
                if node < 0:
                    self._without_leader(queue)
                elif self._may_go(queue, node) and (only is None or only(key)):
                    queue.node = node
                    by_node.setdefault(node, []).append(queue)
        return sum(self._send_to(node, queues) for node, queues in by_node.items())

    def _without_leader(self, queue: _Queue) -> None:
        topic = queue.key[0]
        code = self._leaders.refused(topic)
        match METADATA.action(code):
            case Action.DENIED:
                answer = Answer(Action.DENIED, -1, METADATA.told(code), METADATA.right(code, topic=topic))
                self._refuse(queue, self._denial(topic, answer))
            case Action.REFUSED:
                self._refuse(queue, Refusal(METADATA.told(code), passing=False))
            case _:
                self._postpone(queue, "no leader")

    def _refuse(self, queue: _Queue, refusal: Refusal) -> None:
        queue.refusal = queue.refusal or refusal
        if not queue.in_flight:
            self._regroup(queue)

    def _may_go(self, queue: _Queue, node: int) -> bool:
        """A partition's batches wait for the old leader's answers."""
        return (node == queue.node or not queue.in_flight) and not self._connection.throttled(node)

    def postpone(self, key: PartitionKey, problem: str) -> None:
        """Send nothing to this partition for now: after a pause it is sendable again, until patience ends."""
        self._postpone(self._queues[key], problem)

    def settle(self) -> Iterator[Accepted | Refused]:
        """Handle the answers that came in, in order. Fenced or OutcomeUnknown end the transaction."""
        while self._answers:
            sent, future = self._answers.popleft()
            if future.exception is not None:
                failure = self._connection.classified(future.exception)
                if not isinstance(failure, RequestNotSent):
                    raise OutcomeUnknown(f"Produce: {failure}")
                answers = {queue.key: Answer(Action.LEADER, -1, str(failure)) for queue, _ in sent}
            else:
                answers = produce_answers(future.value, self._leaders)
            for queue, item in sent:
                item.answer = answers.get(queue.key, Answer(Action.UNKNOWN, -1, "no answer for this partition"))
                # A request that could not leave fails at once, before the answers of those that left earlier: settle in sending order.
                while queue.in_flight and (answer := queue.in_flight[0].answer) is not None:
                    yield from self._settle_one(queue, queue.in_flight.popleft(), answer)

    def _settle_one(self, queue: _Queue, item: _Sent, answer: Answer) -> Iterator[Accepted | Refused]:
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
                self._postpone(queue, answer.problem)
            case Action.OUT_OF_ORDER if not first:
                queue.rejected.append(item.batch)
            case Action.DENIED:
                queue.rejected.append(item.batch)
                queue.refusal = queue.refusal or self._denial(queue.key[0], answer)
            case Action.TOO_LARGE | Action.RECORD_REFUSED | Action.REFUSED:
                if self._is_left_out(queue, item.batch, answer, first=first):
                    self.own_bytes -= item.batch.own
                    yield Refused(queue.key, item.batch, answer.problem)
            case _:
                problem = answer.problem or "the broker accepted it behind a batch that it had not accepted"
                raise OutcomeUnknown(f"Produce to {queue.key[0]}-{queue.key[1]}: {problem}", queue.key)
        if not queue.in_flight:
            self._regroup(queue)

    def _denial(self, topic: str, answer: Answer) -> Refusal:
        right = answer.right.format(topic=topic, id=self._transactional_id)
        return Refusal(f"{answer.problem}: {self._connection.granting(right)}", passing=False, denied=True)

    def _is_left_out(self, queue: _Queue, batch: Appendable, answer: Answer, *, first: bool) -> bool:
        """A batch that was refused for good is divided; where that is of no use it stops the partition or (True) is left out."""
        divides = answer.action is Action.TOO_LARGE or (self._skips and answer.action is Action.RECORD_REFUSED)
        problem = answer.problem
        indivisible = batch.count == 1
        if divides and not indivisible:
            try:
                halves = self._halve(batch)
            except ValueError as why:  # one record of the source, or forwarded as it was and unreadable
                problem = f"{problem}; it cannot be divided: {why}"
                indivisible = isinstance(why, Indivisible)
            else:
                queue.rejected.extend(halves)
                self.own_bytes += sum(half.own for half in halves) - batch.own
                return False
        if divides and self._skips and indivisible and first:
            return True
        queue.rejected.append(batch)
        # Behind something that was not accepted either, it is sent and refused once more when that is settled.
        if not (divides and self._skips and indivisible):
            queue.refusal = queue.refusal or Refusal(problem, passing=False)
        return False

    def _regroup(self, queue: _Queue) -> None:
        """All answers are in: put what was not accepted back in front, with its sequences."""
        if queue.disturbed:
            self.waiting_bytes += sum(batch.size for batch in queue.rejected)
            queue.next_sequence = queue.resume_sequence
            queue.waiting.extendleft(reversed(queue.rejected))
            queue.rejected, queue.disturbed = [], False
        if queue.refusal is not None:
            self.waiting_bytes -= sum(batch.size for batch in queue.waiting)
            self.own_bytes -= sum(batch.own for batch in queue.waiting)
            queue.waiting.clear()
        if not queue.busy:
            self._active.pop(queue.key, None)

    def _postpone(self, queue: _Queue, problem: str) -> None:
        now = time.monotonic()
        queue.troubled_since = queue.troubled_since or now
        queue.not_before = now + RETRY_PAUSE_SECONDS
        self.leaders_stale = True
        if now - queue.troubled_since > RETRY_SECONDS:
            self._refuse(queue, Refusal(f"not accepted for {RETRY_SECONDS:.0f} s: {problem}", passing=True))

    def _ready(self, queue: _Queue, now: float) -> bool:
        if not queue.waiting or queue.disturbed or queue.refusal or now < queue.not_before:
            return False
        return queue.proven or not queue.in_flight

    def _send_to(self, node: int, queues: list[_Queue]) -> int:
        total = 0
        window = self._windows[node]
        while self._requests.get(node, 0) < REQUESTS_IN_FLIGHT and (room := window.room) > 0:
            chosen: list[tuple[_Queue, _Sent]] = []
            payloads: list[tuple[str, int, tuple[Buffer, ...]]] = []
            size = 0
            for queue in queues:
                if size >= min(REQUEST_BYTES, room):
                    break
                if not queue.waiting or (not queue.proven and queue.in_flight):
                    continue
                batch = queue.waiting.popleft()
                item = _Sent(batch, queue.next_sequence)
                payloads.append((*queue.key, batch.encode(*self.identity, item.sequence, self._transactional_id is not None)))
                queue.next_sequence = (queue.next_sequence + batch.count) % SEQUENCES
                queue.in_flight.append(item)
                self._active[queue.key] = self._active.pop(queue.key)  # the others come first the next time
                chosen.append((queue, item))
                size += batch.size
            if not chosen:
                break
            queues.append(queues.pop(0))  # another partition goes first next time
            window.sent(size)
            self._submit(node, size, chosen, payloads)
            self.waiting_bytes -= size
            total += size
        return total

    def _submit(
        self, node: int, size: int, chosen: list[tuple[_Queue, _Sent]], payloads: list[tuple[str, int, tuple[Buffer, ...]]]
    ) -> None:
        request = produce_request(payloads, self._leaders, self._transactional_id, transactions_v2=self._transactions_v2)
        self._requests[node] = self._requests.get(node, 0) + 1
        future = self._connection.submit(request, node)

        def answered(_: Any) -> None:
            self._requests[node] -= 1
            pause_ms = future.value.throttle_time_ms if future.exception is None else 0
            self._windows[node].answered(size, pause_ms / 1000)
            self._answers.append((chosen, future))
            self._wakeup.fire()

        future.add_both(answered)
