"""How a broker answers Fetch (ReplicaManager.readFromLog, Partition.readRecords, DelayedFetch). Ferry uses no fetch sessions.

Since version 11 a consumer may read from any replica (KIP-392). A request that finds less than it wants waits, until there is more, until
one of its partitions has a problem, or until its time is over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka.protocol.consumer import FetchResponse
from tests.simulation.codes import Code
from tests.simulation.log import Log
from tests.simulation.partition import Partition
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import Broker, ClusterState, Parked
from tests.simulation.steps import Reply
from tests.simulation.topics import as_decoded

READ_COMMITTED = 1
BY_ID, FROM_FOLLOWERS = 13, 11
UNKNOWN = -1
# KafkaApis itself answers with these, in another form.
_NOT_FOUND = frozenset({Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_TOPIC_OR_PARTITION, Code.TOPIC_AUTHORIZATION_FAILED})
_TOPIC = FetchResponse.FetchableTopicResponse
_PARTITION = _TOPIC.PartitionData


class Wanted(NamedTuple):
    """One partition of a request: `asked` is its part of the request."""

    partition: Partition | None
    code: Code  # why there is none
    asked: Any


class Read(NamedTuple):
    """What one partition answers."""

    code: Code
    data: bytes = b""
    log: Log | None = None
    diverging: tuple[int, int] | None = None


class Fetching:
    """Answers Fetch."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def answer(self, broker: Broker, request: Any, version: int, reply: Reply) -> None:
        if request.session_id:
            reply.give(FetchResponse(version=version, error_code=int(Code.FETCH_SESSION_ID_NOT_FOUND), responses=[]))
            return
        wanted = [
            (topic, [self._wanted(broker, topic, part, version) for part in topic.partitions or ()]) for topic in request.topics or ()
        ]

        def made() -> Any:
            return self._made(broker, request, version, wanted)

        if request.max_wait_ms <= 0 or self._is_ready(broker, request, version, wanted):
            reply.give(made())
            return
        due = self._state.now + request.max_wait_ms
        ready = lambda: self._is_ready(broker, request, version, wanted)  # noqa: E731
        self._state.park(Parked(f"Fetch at {broker.node}", broker, reply, due, ready, lambda: reply.give(made())))

    def _wanted(self, broker: Broker, topic: Any, part: Any, version: int) -> Wanted:
        name, topic_id = (None, topic.topic_id) if version >= BY_ID else (topic.topic, None)
        found = self._state.topic_of(broker, name, topic_id)
        known = found.name if found is not None else name
        if known and not self._state.rights.may(Operation.READ, Kind.TOPIC, known):
            return Wanted(None, Code.TOPIC_AUTHORIZATION_FAILED, part)
        partition = self._state.partition_of(broker, found, part.partition)
        if partition is None:
            by_id = version >= BY_ID and found is None
            return Wanted(None, Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION, part)
        return Wanted(partition, Code.NONE, part)

    def _is_ready(self, broker: Broker, request: Any, version: int, wanted: list[tuple[Any, list[Wanted]]]) -> bool:
        """Whether the answer has an error, a divergence, or bytes enough."""
        found = 0
        parts = [one for _, group in wanted for one in group]
        if not parts:
            return True
        for one in parts:
            checked = self._checked(broker, one, version)
            if checked.log is None or checked.diverging is not None:
                return True
            bound = _bound(checked.log, request.isolation_level)
            if one.asked.fetch_offset < bound:
                found += min(checked.log.bytes_between(one.asked.fetch_offset, bound), one.asked.partition_max_bytes)
        return found >= request.min_bytes

    def _checked(self, broker: Broker, wanted: Wanted, version: int) -> Read:
        """What one partition answers, without its records."""
        partition, asked = wanted.partition, wanted.asked
        if partition is None:
            return Read(wanted.code)
        if self._state.topics_of(broker).get(partition.topic) is None:
            return Read(Code.UNKNOWN_TOPIC_OR_PARTITION)
        code = self._state.not_led(broker, partition, asked.current_leader_epoch, leader_only=version < FROM_FOLLOWERS)
        if code is not Code.NONE:
            return Read(code)
        log = partition.logs[broker.node]
        if asked.last_fetched_epoch >= 0:
            epoch, end = log.epochs.end_of(asked.last_fetched_epoch, log.end)
            if epoch < 0 or end < 0 or asked.fetch_offset < log.start:
                return Read(Code.OFFSET_OUT_OF_RANGE)
            if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
                return Read(Code.NONE, log=log, diverging=(epoch, end))
        if not log.start <= asked.fetch_offset <= log.end:
            return Read(Code.OFFSET_OUT_OF_RANGE)
        return Read(Code.NONE, log=log)

    def _made(self, broker: Broker, request: Any, version: int, wanted: list[tuple[Any, list[Wanted]]]) -> Any:
        left, whole = request.max_bytes, True
        topics = []
        for topic, parts in wanted:
            found = []
            for one in parts:
                read = self._checked(broker, one, version)
                if read.log is not None and read.diverging is None:
                    bound, limit = _bound(read.log, request.isolation_level), min(one.asked.partition_max_bytes, left)
                    read = read._replace(data=read.log.read(one.asked.fetch_offset, bound, limit, whole=whole))
                whole, left = whole and not read.data, max(0, left - len(read.data))
                part = _part(one.asked, read, request.isolation_level, version)
                if read.code in _NOT_FOUND and self._state.settings.release < (3, 0):
                    part.aborted_transactions = None
                found.append(part)
            named = {"topic_id": as_decoded(topic.topic_id)} if version >= BY_ID else {"topic": topic.topic}
            topics.append(_TOPIC(version=version, partitions=found, **named))
        return FetchResponse(version=version, throttle_time_ms=broker.throttle, error_code=0, session_id=0, responses=topics)


def _bound(log: Log, isolation: int) -> int:
    return log.stable_end if isolation == READ_COMMITTED else log.high_watermark


def _part(asked: Any, read: Read, isolation: int, version: int) -> Any:
    log = read.log
    if log is None:
        return _PARTITION(
            version=version,
            partition_index=asked.partition,
            error_code=int(read.code),
            high_watermark=UNKNOWN,
            last_stable_offset=UNKNOWN,
            log_start_offset=UNKNOWN,
            aborted_transactions=[] if read.code in _NOT_FOUND else None,
            records=b"",
        )
    more: dict[str, Any] = {}
    if read.diverging is not None:
        more["diverging_epoch"] = _PARTITION.EpochEndOffset(version=version, epoch=read.diverging[0], end_offset=read.diverging[1])
    aborted = None
    if isolation == READ_COMMITTED:
        # A broker looks as far as its sparse index says, which for a small log is the end.
        found = log.producers.aborted_between(asked.fetch_offset, log.end) if read.data else ()
        aborted = [_PARTITION.AbortedTransaction(version=version, producer_id=one.producer_id, first_offset=one.first) for one in found]
    return _PARTITION(
        version=version,
        partition_index=asked.partition,
        error_code=0,
        high_watermark=log.high_watermark,
        last_stable_offset=log.stable_end,
        log_start_offset=log.start,
        aborted_transactions=aborted,
        records=read.data,
        **more,
    )
