"""A simulated cluster at the level of messages: a request and a broker go in, the answer comes out as kafka-python would have decoded it.

It is deterministic and has one thread. Time moves only with `advance`, and what happens by itself is a step in `steps`, which the caller
runs in any order: so a seed decides everything. A request is handled at once; its answer may come later (`Reply`), or never.

`submit` takes what ClusterConnection.submit takes. Requests take the version that kafka-python would choose for this cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTransactionsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from tests.simulation.administration import Administration
from tests.simulation.fetching import Fetching
from tests.simulation.group_requests import GroupRequests
from tests.simulation.groups import GroupStore
from tests.simulation.metadata import ClusterMetadata
from tests.simulation.offsets_of_logs import OffsetsOfLogs
from tests.simulation.partition import NO_LEADER, Led, Partition
from tests.simulation.producing import Producing
from tests.simulation.state import GROUPS, TRANSACTIONS, Broker, ClusterState, Image, Settings
from tests.simulation.steps import Reply, Step, StepKind, Steps
from tests.simulation.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC, Topic
from tests.simulation.transaction_coordinator import TransactionCoordinators
from tests.simulation.transaction_requests import TransactionRequests

from ferry.clusters.groups.messages import ConsumerGroupDescribeRequest

# 1 December 2026, 00:00 UTC.
BEGIN = 1_796_083_200_000
_COORDINATED = {GROUPS_TOPIC: GROUPS, TRANSACTIONS_TOPIC: TRANSACTIONS}
AtOnce = Callable[[Broker, Any, int], Any]
Later = Callable[[Broker, Any, int, Reply], None]


class SimulatedCluster:
    """`steps`: what may happen next by itself. The state is open to tests."""

    def __init__(self, settings: Settings | None = None, now: int = BEGIN) -> None:
        self.state = ClusterState(settings or Settings(), now)
        self.groups = GroupStore()
        self.transactions = TransactionCoordinators(self.state, self.groups)
        self.administration = Administration(self.state, self.groups)
        self._metadata = ClusterMetadata(self.state)
        self._versions = BrokerVersionData(broker_version=self.state.settings.release, api_versions=self._metadata.versions)
        self._later: dict[int, Later] = {
            FetchRequest.API_KEY: Fetching(self.state).answer,
            ProduceRequest.API_KEY: Producing(self.state, self.transactions).answer,
        }
        self._at_once = self._handlers()

    def _handlers(self) -> dict[int, AtOnce]:
        logs, metadata, administration = OffsetsOfLogs(self.state), self._metadata, self.administration
        transactions = TransactionRequests(self.state, self.transactions)
        groups = GroupRequests(self.state, self.groups, self.transactions)
        return {
            ListOffsetsRequest.API_KEY: logs.list_offsets,
            OffsetForLeaderEpochRequest.API_KEY: logs.leader_epochs,
            DescribeProducersRequest.API_KEY: logs.producers,
            DescribeLogDirsRequest.API_KEY: logs.log_directories,
            DeleteRecordsRequest.API_KEY: logs.delete_records,
            MetadataRequest.API_KEY: metadata.metadata,
            FindCoordinatorRequest.API_KEY: metadata.coordinators,
            ApiVersionsRequest.API_KEY: metadata.api_versions,
            DescribeClusterRequest.API_KEY: metadata.cluster,
            DescribeQuorumRequest.API_KEY: metadata.quorum,
            DescribeAclsRequest.API_KEY: metadata.acls,
            InitProducerIdRequest.API_KEY: transactions.init,
            AddPartitionsToTxnRequest.API_KEY: transactions.add_partitions,
            AddOffsetsToTxnRequest.API_KEY: transactions.add_offsets,
            EndTxnRequest.API_KEY: transactions.end,
            ListTransactionsRequest.API_KEY: transactions.list,
            DescribeTransactionsRequest.API_KEY: transactions.describe,
            OffsetFetchRequest.API_KEY: groups.fetch,
            OffsetCommitRequest.API_KEY: groups.commit,
            TxnOffsetCommitRequest.API_KEY: groups.commit_in_transaction,
            ListGroupsRequest.API_KEY: groups.list,
            DescribeGroupsRequest.API_KEY: groups.describe,
            ConsumerGroupDescribeRequest.API_KEY: groups.describe_consumer,
            DeleteGroupsRequest.API_KEY: groups.delete,
            OffsetDeleteRequest.API_KEY: groups.delete_offsets,
            CreateTopicsRequest.API_KEY: administration.create_topics,
            CreatePartitionsRequest.API_KEY: administration.create_partitions,
            DeleteTopicsRequest.API_KEY: administration.delete_topics,
            DescribeConfigsRequest.API_KEY: administration.describe_configs,
            IncrementalAlterConfigsRequest.API_KEY: administration.alter_configs,
        }

    @property
    def answered(self) -> frozenset[int]:
        """The keys of the requests that have an answer here."""
        return frozenset(self._later) | frozenset(self._at_once)

    @property
    def now(self) -> int:
        return self.state.now

    @property
    def steps(self) -> Steps:
        return self.state.steps

    def version_of(self, request: Any) -> int:
        """The version in which the request is sent; kafka-python's IncompatibleBrokerVersion if there is none."""
        if request.API_VERSION is None:
            request.API_VERSION = self._versions.api_version(request)
        return int(request.API_VERSION)

    def submit(self, request: Any, node: int) -> Reply:
        """Hand `request` to broker `node`. The request must not change afterwards."""
        reply, broker = Reply(), self.state.brokers[node]
        if not broker.up:
            reply.lose()
            return reply
        version = self.version_of(request)
        later = self._later.get(request.API_KEY)
        if later is not None:
            later(broker, request, version, reply)
        elif request.API_KEY in self._at_once:
            answer = self._at_once[request.API_KEY](broker, request, version)
            if broker.throttle and getattr(answer, "throttle_time_ms", None) is not None:
                answer.throttle_time_ms = broker.throttle
            reply.give(answer)
        else:
            raise kafka_errors.IncompatibleBrokerVersion(f"the simulated cluster has no answer to {request.name}")
        self.state.look_at_parked()
        return reply

    def run(self, step: Step) -> bool:
        """Run one step; whether it is done. Otherwise it waits for something else."""
        done = self.steps.run(step)
        self.state.look_at_parked()
        return done

    def settle(self) -> None:
        """Run all steps that can be run, in their order, and what follows from them."""
        done = True
        while done:
            done = False
            for step in self.steps:
                done = self.run(step) or done

    def advance(self, now: int) -> None:
        """Move the time, in ms. What is due then becomes steps."""
        self.state.now = max(self.state.now, now)
        self.transactions.look_at_time()
        self.state.look_at_parked()

    def topic(self, name: str) -> Topic:
        return self.state.topics[name]

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1, **config: str) -> Topic:
        """Without a request. Underscores in names of `config` stand for dots."""
        return self.state.create_topic(name, partitions, replicas, {key.replace("_", "."): value for key, value in config.items()})

    def retain(self, name: str) -> None:
        """Retention and compaction of a topic, as brokers do them from time to time."""
        self.topic(name).retain(self.now)
        self.state.look_at_parked()

    def elect(self, partition: Partition, leader: int) -> None:
        """Another leader (-1: none). A replica that is not in sync makes it an unclean election."""
        partition.elect(leader)
        self._moved(partition)

    def kill(self, node: int) -> None:
        """The broker is gone at once: what waited there is lost. Its partitions get other leaders in a step of their own."""
        broker = self.state.brokers[node]
        broker.up, broker.image = False, None
        for parked in [one for one in self.state.parked if one.broker is broker]:
            parked.reply.lose()
            self.state.parked.remove(parked)
        self._stop_copying(node)
        self.steps.add(StepKind.ELECT, str(node), lambda: self._replace(node))

    def start(self, node: int) -> None:
        """The broker is back; the controller has noticed by now that it was gone. Its replicas catch up in a step of their own."""
        broker = self.state.brokers[node]
        self._replace(node)
        broker.up, broker.image = True, None
        for partition in self._partitions():
            partition.offline.discard(node)
        self.steps.add(StepKind.FOLLOW, str(node), lambda: self._follow(node))

    def fail_disk(self, node: int, *partitions: Partition) -> None:
        """A disk of a broker is full, or broken: it stops to use its replicas of these partitions, until it starts again.

        Their leaders are replaced in a step of its own. A broker without a disk that is left ends: `kill`.
        """
        for partition in partitions:
            partition.offline.add(node)
            partition.waiting.add(node)
        self.steps.add(StepKind.ELECT, f"{node} without a disk", lambda: self._replace(node))
        self.state.look_at_parked()

    def cut_off(self, node: int) -> None:
        """Clients still reach the broker, but no other broker does: it goes on with the metadata that it has."""
        state, broker = self.state, self.state.brokers[node]
        # Copies: the broker cannot replicate what it appends as the leader that it was.
        led = {part.key: Led(*part.led) for part in self._partitions()}
        broker.image = Image(dict(state.topics), led, frozenset(state.up()))
        self._stop_copying(node)
        self.steps.add(StepKind.ELECT, str(node), lambda: self._replace(node))

    def join_again(self, node: int) -> None:
        """The end of `cut_off`: the broker learns the metadata, and its replicas catch up."""
        self.state.brokers[node].image = None
        self.steps.add(StepKind.FOLLOW, str(node), lambda: self._follow(node))

    def _stop_copying(self, node: int) -> None:
        for partition in self._partitions():
            if node in partition.logs:
                partition.waiting.add(node)

    def _is_gone(self, node: int) -> bool:
        broker = self.state.brokers[node]
        return not broker.up or broker.image is not None

    def lacks(self, node: int, partition: Partition) -> bool:
        """Whether the broker is gone for the others, or its disk with this replica."""
        return self._is_gone(node) or node in partition.offline

    def _partitions(self) -> Iterable[Partition]:
        return [part for topic in self.state.topics.values() for part in topic.partitions]

    def _replace(self, node: int) -> bool:
        """The controller notices that the broker, or one of its disks, is gone."""
        for partition in self._partitions():
            if node not in partition.logs or not self.lacks(node, partition):
                continue
            if partition.led.leader == node:
                self._elect_another(partition, node)
            partition.leave_sync(node)
        return True

    def _elect_another(self, partition: Partition, node: int) -> None:
        there = [other for other in partition.replicas if other != node and not self.lacks(other, partition)]
        clean = [other for other in there if other in partition.led.in_sync]
        unclean = there if self.state.topics[partition.topic].elects_unclean else []
        self.elect(partition, next(iter(clean or unclean), NO_LEADER))

    def _follow(self, node: int) -> bool:
        if self._is_gone(node):
            return False
        for partition in self._partitions():
            if node not in partition.logs or node in partition.offline:
                continue
            if partition.led.leader == NO_LEADER and node in partition.led.in_sync:
                self.elect(partition, node)
            partition.catch_up(node)
        return True

    def _moved(self, partition: Partition) -> None:
        """A coordinator that has moved reads its state first."""
        kind = _COORDINATED.get(partition.topic)
        if kind == TRANSACTIONS:
            self.transactions.move(partition)
        elif kind == GROUPS:
            place = (GROUPS, partition.index)
            self.state.loading.add(place)
            self.steps.add(StepKind.LOAD, f"{partition.topic}-{partition.index}", lambda: self._load_groups(partition))
        self.state.look_at_parked()

    def _load_groups(self, partition: Partition) -> bool:
        if not self.state.writes(partition):
            return False
        self.state.loading.discard((GROUPS, partition.index))
        return True
