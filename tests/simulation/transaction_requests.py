"""How a broker answers requests to transaction coordinators (KafkaApis, TransactionCoordinator)."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.producer import AddOffsetsToTxnResponse, AddPartitionsToTxnResponse, EndTxnResponse, InitProducerIdResponse
from tests.simulation.codes import Code
from tests.simulation.rights import Kind, Operation
from tests.simulation.state import GROUPS, TRANSACTIONS, Broker, ClusterState
from tests.simulation.transaction_coordinator import TransactionCoordinators
from tests.simulation.transactions import NO_PAIR, Decision, Pair, State, Transactional

# The first versions of requests in which the client leaves epochs to the broker (KIP-890), and with a code of its own for a fenced pair.
END_BUMPS, INIT_KNOWS_FENCED = 5, 4


class TransactionRequests:
    """Answers these requests."""

    def __init__(self, state: ClusterState, coordinators: TransactionCoordinators) -> None:
        self._state, self._coordinators = state, coordinators

    def _moved(self, broker: Broker, name: str | None, needs: Operation = Operation.WRITE) -> Code:
        """Why a request about this id is refused."""
        if not self._state.rights.may(needs, Kind.TRANSACTIONAL_ID, name or ""):
            return Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return self._state.not_coordinator(broker, TRANSACTIONS, name or "")

    def init(self, broker: Broker, request: Any, version: int) -> Any:
        decision = self._initialised(broker, request)
        code = decision.code
        if code is Code.PRODUCER_FENCED and version < INIT_KNOWS_FENCED:
            code = Code.INVALID_PRODUCER_EPOCH
        pair = decision.pair
        return InitProducerIdResponse(version=version, error_code=int(code), producer_id=pair.producer_id, producer_epoch=pair.epoch)

    def _initialised(self, broker: Broker, request: Any) -> Decision:
        pair = Pair(request.producer_id, request.producer_epoch)
        if (pair.producer_id < 0) != (pair.epoch < 0):
            return Decision(Code.INVALID_REQUEST)
        if request.transactional_id is None:
            return Decision(Code.NONE, Pair(self._state.next_producer_id(), 0))
        moved = self._moved(broker, request.transactional_id)
        if moved is not Code.NONE and request.transactional_id:
            return Decision(moved)
        expected = None if pair == NO_PAIR else pair
        return self._coordinators.init(request.transactional_id, request.transaction_timeout_ms, expected)

    def add_partitions(self, broker: Broker, request: Any, version: int) -> Any:
        """The form of clients; the one of brokers, from version 4 on, is a call inside the simulation."""
        name, topics = request.v3_and_below_transactional_id, request.v3_and_below_topics
        keys = [(topic.name, index) for topic in topics for index in topic.partitions]
        known = self._state.topics_of(broker)
        refused = dict[tuple[str, int], Code]()
        for key in keys:
            if not self._state.rights.may(Operation.WRITE, Kind.TOPIC, key[0]):
                refused[key] = Code.TOPIC_AUTHORIZATION_FAILED
            elif self._state.partition_of(broker, known.get(key[0]), key[1]) is None:
                refused[key] = Code.UNKNOWN_TOPIC_OR_PARTITION
        code = self._moved(broker, name)
        if refused and code is not Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            codes = {key: refused.get(key, Code.OPERATION_NOT_ATTEMPTED) for key in keys}
        else:
            if code is Code.NONE:
                code = self._coordinators.add(name, Pair(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch), keys)
            codes = dict.fromkeys(keys, code)
        result = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
        found = [
            result(
                version=version,
                name=topic.name,
                results_by_partition=[
                    result.AddPartitionsToTxnPartitionResult(
                        version=version, partition_index=index, partition_error_code=int(codes[topic.name, index])
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
        return AddPartitionsToTxnResponse(version=version, results_by_topic_v3_and_below=found)

    def add_offsets(self, broker: Broker, request: Any, version: int) -> Any:
        code = self._moved(broker, request.transactional_id)
        if code is not Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and not self._state.rights.may(
            Operation.READ, Kind.GROUP, request.group_id
        ):
            code = Code.GROUP_AUTHORIZATION_FAILED
        if code is Code.NONE:
            partition = self._state.coordinator(GROUPS, request.group_id) or self._state.coordinator(GROUPS, request.group_id)
            assert partition is not None
            pair = Pair(request.producer_id, request.producer_epoch)
            code = self._coordinators.add(request.transactional_id, pair, [partition.key])
        return AddOffsetsToTxnResponse(version=version, error_code=int(code))

    def end(self, broker: Broker, request: Any, version: int) -> Any:
        moved, name = self._moved(broker, request.transactional_id), request.transactional_id
        decision = Decision(moved)
        if moved is Code.NONE or not name:
            pair = Pair(request.producer_id, request.producer_epoch)
            decision = self._coordinators.end(name, pair, commits=bool(request.committed), bumps=version >= END_BUMPS)
        more: dict[str, Any] = {}
        if version >= END_BUMPS:
            more = {"producer_id": decision.pair.producer_id, "producer_epoch": decision.pair.epoch}
        return EndTxnResponse(version=version, error_code=int(decision.code), **more)

    def list(self, broker: Broker, request: Any, version: int) -> Any:
        listed = ListTransactionsResponse.TransactionState
        if any(kind == TRANSACTIONS for kind, _ in self._state.loading):
            return ListTransactionsResponse(
                version=version, error_code=int(Code.COORDINATOR_LOAD_IN_PROGRESS), unknown_state_filters=[], transaction_states=[]
            )
        names, ids = frozenset(request.state_filters or ()), frozenset(request.producer_id_filters or ())
        unknown = sorted(names - {state.value for state in State})
        found = [
            listed(version=version, transactional_id=one.name, producer_id=one.pair.producer_id, transaction_state=one.state.value)
            for one in self._coordinators.ids.values()
            if self._moved(broker, one.name, Operation.DESCRIBE) is Code.NONE
            and (not ids or one.pair.producer_id in ids)
            and (not names or one.state.value in names)
        ]
        return ListTransactionsResponse(version=version, error_code=0, unknown_state_filters=unknown, transaction_states=found)

    def describe(self, broker: Broker, request: Any, version: int) -> Any:
        found = [self._described(broker, name, version) for name in request.transactional_ids]
        return DescribeTransactionsResponse(version=version, transaction_states=found)

    def _described(self, broker: Broker, name: str, version: int) -> Any:
        described = DescribeTransactionsResponse.TransactionState
        known, code = self._coordinators.ids.get(name), self._moved(broker, name, Operation.DESCRIBE)
        if not name:
            code = Code.INVALID_REQUEST
        elif code is Code.NONE and known is None:
            code = Code.TRANSACTIONAL_ID_NOT_FOUND
        if code is not Code.NONE or known is None:
            return described(version=version, error_code=int(code), transactional_id=name)
        return described(
            version=version,
            error_code=0,
            transactional_id=name,
            transaction_state=known.state.value,
            transaction_timeout_ms=known.timeout,
            transaction_start_time_ms=known.started,
            producer_id=known.pair.producer_id,
            producer_epoch=known.pair.epoch,
            topics=_by_topic(known, described.TopicData, version),
        )


def _by_topic(known: Transactional, topic_type: Any, version: int) -> list[Any]:
    found: dict[str, list[int]] = {}
    for topic, index in known.partitions:
        found.setdefault(topic, []).append(index)
    return [topic_type(version=version, topic=topic, partitions=indexes) for topic, indexes in found.items()]
