"""How a broker answers questions about logs: ListOffsets, OffsetForLeaderEpoch, DescribeProducers, DescribeLogDirs; and DeleteRecords."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DeleteRecordsResponse, DescribeLogDirsResponse, DescribeProducersResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetForLeaderEpochResponse
from tests.simulation.codes import Code
from tests.simulation.log import Found, Log
from tests.simulation.partition import Led, Partition
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import Broker, ClusterState

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
KNOWS_NEWEST = 7  # the first version with special times below that of the log's start (KIP-734)
READ_COMMITTED = 1
HIGH_WATERMARK = -1  # as an offset of DeleteRecords
_DISK_BYTES = 1 << 40


class OffsetsOfLogs:
    """Answers these requests."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def _found(
        self, broker: Broker, topic: str, index: int, epoch: int = -1, *, needs: Operation = Operation.DESCRIBE
    ) -> tuple[Code, Partition | None]:
        """The partition that this broker leads, or why there is none."""
        if not self._state.rights.may(needs, Kind.TOPIC, topic):
            return Code.TOPIC_AUTHORIZATION_FAILED, None
        partition = self._state.partition_of(broker, self._state.topic_of(broker, topic, None), index)
        if partition is None:
            return Code.UNKNOWN_TOPIC_OR_PARTITION, None
        code = self._state.not_led(broker, partition, epoch)
        return code, None if code is not Code.NONE else partition

    def list_offsets(self, broker: Broker, request: Any, version: int) -> Any:
        topic_type = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for topic in request.topics:
            parts = []
            for asked in topic.partitions:
                code, partition = self._found(broker, topic.name, asked.partition_index, asked.current_leader_epoch)
                found = Found()
                if partition is not None:
                    led = self._state.led(broker, partition)
                    # An older request takes the newer special times for times: all records are later.
                    timestamp = max(asked.timestamp, 0) if version < KNOWS_NEWEST and asked.timestamp < EARLIEST else asked.timestamp
                    code, found = _listed(partition, partition.logs[broker.node], led, timestamp, request.isolation_level)
                more = {"leader_epoch": found.epoch} if version >= 4 else {}
                parts.append(
                    topic_type.ListOffsetsPartitionResponse(
                        version=version,
                        partition_index=asked.partition_index,
                        error_code=int(code),
                        timestamp=found.timestamp,
                        offset=found.offset,
                        **more,
                    )
                )
            topics.append(topic_type(version=version, name=topic.name, partitions=parts))
        return ListOffsetsResponse(version=version, topics=topics)

    def leader_epochs(self, broker: Broker, request: Any, version: int) -> Any:
        topic_type = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        topics = []
        for topic in request.topics:
            parts = []
            for asked in topic.partitions:
                code, partition = self._found(broker, topic.topic, asked.partition, asked.current_leader_epoch)
                epoch, end = -1, -1
                if partition is not None:
                    log = partition.logs[broker.node]
                    epoch, end = log.epochs.end_of(asked.leader_epoch, log.end)
                parts.append(
                    topic_type.EpochEndOffset(
                        version=version, error_code=int(code), partition=asked.partition, leader_epoch=epoch, end_offset=end
                    )
                )
            topics.append(topic_type(version=version, topic=topic.topic, partitions=parts))
        return OffsetForLeaderEpochResponse(version=version, topics=topics)

    def producers(self, broker: Broker, request: Any, version: int) -> Any:
        topic_type = DescribeProducersResponse.TopicResponse
        topics = []
        for topic in request.topics:
            parts = []
            for index in topic.partition_indexes:
                code, partition = self._found(broker, topic.name, index, needs=Operation.READ)
                known = {} if partition is None else partition.logs[broker.node].producers.known
                active = [
                    topic_type.PartitionResponse.ProducerState(
                        version=version,
                        producer_id=producer_id,
                        producer_epoch=producer.epoch,
                        last_sequence=producer.last_sequence,
                        last_timestamp=producer.last_timestamp,
                        coordinator_epoch=producer.coordinator_epoch,
                        current_txn_start_offset=-1 if producer.opened is None else producer.opened,
                    )
                    for producer_id, producer in known.items()
                ]
                parts.append(
                    topic_type.PartitionResponse(
                        version=version, partition_index=index, error_code=int(code), error_message=None, active_producers=active
                    )
                )
            topics.append(topic_type(version=version, name=topic.name, partitions=parts))
        return DescribeProducersResponse(version=version, topics=topics)

    def log_directories(self, broker: Broker, request: Any, version: int) -> Any:
        directory, topics = DescribeLogDirsResponse.DescribeLogDirsResult, []
        named = None if request.topics is None else {topic.topic: frozenset(topic.partitions) for topic in request.topics}
        for topic in self._state.topics_of(broker).values():
            held = [part for part in topic.partitions if broker.node in part.logs]
            held = held if named is None else [part for part in held if part.index in named.get(topic.name, ())]
            parts = [
                directory.DescribeLogDirsTopic.DescribeLogDirsPartition(
                    version=version,
                    partition_index=part.index,
                    partition_size=part.logs[broker.node].size,
                    offset_lag=0,
                    is_future_key=False,
                )
                for part in held
            ]
            if parts:
                topics.append(directory.DescribeLogDirsTopic(version=version, name=topic.name, partitions=parts))
        more: dict[str, Any] = {"total_bytes": _DISK_BYTES, "usable_bytes": _DISK_BYTES} if version >= 4 else {}
        found = directory(version=version, error_code=0, log_dir="/data", topics=topics, **more)
        return DescribeLogDirsResponse(version=version, results=[found])

    def delete_records(self, broker: Broker, request: Any, version: int) -> Any:
        topic_type = DeleteRecordsResponse.DeleteRecordsTopicResult
        topics = []
        for topic in request.topics:
            parts = []
            for asked in topic.partitions:
                code, partition = self._found(broker, topic.name, asked.partition_index, needs=Operation.DELETE)
                low = -1
                if partition is not None:
                    code, low = _deleted(partition, partition.logs[broker.node], asked.offset)
                parts.append(
                    topic_type.DeleteRecordsPartitionResult(
                        version=version, partition_index=asked.partition_index, low_watermark=low, error_code=int(code)
                    )
                )
            topics.append(topic_type(version=version, name=topic.name, partitions=parts))
        return DeleteRecordsResponse(version=version, topics=topics)


def _listed(partition: Partition, log: Log, led: Led, timestamp: int, isolation: int) -> tuple[Code, Found]:
    """Partition.fetchOffsetForTimestamp. A new leader that does not know the high watermark yet names no end (KIP-207)."""
    bound = log.stable_end if isolation == READ_COMMITTED else log.high_watermark
    lags = led is partition.led and partition.epoch_start > log.high_watermark
    if timestamp == LATEST:
        return (Code.OFFSET_NOT_AVAILABLE, Found()) if lags else (Code.NONE, Found(bound, -1, led.epoch))
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        epoch, first = log.epochs.earliest
        return Code.NONE, Found(log.start, -1, epoch if 0 <= first <= log.start else -1)
    if timestamp == LATEST_TIERED:
        return Code.NONE, Found()
    found = log.newest() if timestamp == NEWEST else log.first_since(timestamp)
    if 0 <= found.offset < bound:
        return Code.NONE, found
    return (Code.OFFSET_NOT_AVAILABLE if lags else Code.NONE), Found()


def _deleted(partition: Partition, log: Log, offset: int) -> tuple[Code, int]:
    start = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= start <= log.high_watermark:
        return Code.OFFSET_OUT_OF_RANGE, -1
    log.delete_before(start)
    partition.replicate()
    return Code.NONE, log.start
