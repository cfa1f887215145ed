"""What Ferry does for every error code that a broker may answer: one table for each kind of request (pure).

Kafka's sources say which codes a request may get. The comment above each table names the classes: those that give the codes (Broker), and
the one in Kafka's client that handles them (Java). Ferry does the same as that client; where it does not, a comment says why. `otherwise`
is the action for a code without a row: Ferry repeats a read until the caller's time is over; a write may have happened (UNKNOWN).

`docs/answers.md` shows all tables (tools/docs writes it).
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from ferry.clusters.net.error_codes import CODES, named
from ferry.errors import (
    AuthenticationFailed,
    ChangeRefused,
    ConfigError,
    FerryError,
    GroupFailed,
    ReplicatorActive,
    TooFewBrokers,
    UnreadableBatch,
)


class Action(Enum):
    """What Ferry does about one code; the values are the words of docs/answers.md."""

    GO_ON = "continues"
    NOTHING = "treats the answer as empty, and continues"
    AGAIN = "asks again"
    LEADER = "finds the leader, then asks again"
    COORDINATOR = "finds the coordinator, then asks again"
    BOUNDS = "asks for the first and last offset of the log, then records a loss, stops with `SourceTruncated`, or asks again"
    GONE = "asks again for 5 s, then treats the topic as deleted"
    OUT_OF_ORDER = "sends the batch again after the batch before it was accepted; if there is none, gives up the transaction"
    TOO_LARGE = (
        "divides the batch; if one record is too large, stops the partition, or skips the record (`ferry.abort.on.send.failure=false`)"
    )
    RECORD_REFUSED = "stops the partition, or skips the record (`ferry.abort.on.send.failure=false`)"
    DENIED = "names the missing right"
    REFUSED = "stops and gives the reason"
    FENCED = "ends: a newer run holds the transactional id"
    UNKNOWN = "cannot know whether the broker executed the request: gives up its open transaction, if any, and reads what was committed"


ASKED_AGAIN = frozenset({Action.AGAIN, Action.LEADER, Action.COORDINATOR})
# Coordinators answer with these if an offset commit holds too many offsets: since Kafka 3.7 with the first, which may also mean something
# else, before that with the other. Ferry then sends fewer at once. The row of the code counts only if a single offset is refused.
TOO_MANY_OFFSETS = frozenset({CODES["UNKNOWN_SERVER_ERROR"], CODES["INVALID_COMMIT_OFFSET_SIZE"]})
# A leader answers Produce with these also if it has appended the batch but its replicas have not (DelayedProduce,
# Partition.checkEnoughReplicasReachOffset). If the batch comes again with its sequence number, the leader recognises it.
_APPENDED = "UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT NETWORK_EXCEPTION NOT_ENOUGH_REPLICAS_AFTER_APPEND"
PERHAPS_APPENDED = frozenset(CODES[name] for name in f"{_APPENDED} KAFKA_STORAGE_ERROR".split())
# An answer holds a code for each partition; the most serious one decides.
_GRAVEST_FIRST = (
    *(Action.FENCED, Action.DENIED, Action.REFUSED, Action.GONE, Action.UNKNOWN),
    *(Action.COORDINATOR, Action.LEADER, Action.AGAIN, Action.NOTHING, Action.GO_ON),
)


class Meaning(NamedTuple):
    """What one code means to one request."""

    action: Action
    told: str = ""  # for DENIED the right to grant, otherwise what it means and what to do; the caller fills in names like `{topic}`
    error: type[FerryError] = FerryError  # the class of the error that REFUSED raises if it is not the error of one partition


class Row(NamedTuple):
    """The meaning of some codes: their names in one text, then as in Meaning."""

    codes: str
    action: Action
    told: str = ""
    error: type[FerryError] = FerryError


class RequestKind:
    """One kind of request. `otherwise`: the action for every code without a row. A code counts with its last row."""

    def __init__(self, name: str, otherwise: Action, *rows: Row) -> None:
        self.name, self.otherwise, self.rows = name, otherwise, rows
        by_code = {CODES[code]: Meaning(row.action, row.told, row.error) for row in rows for code in row.codes.split()}
        self.meanings: Mapping[int, Meaning] = {0: Meaning(Action.GO_ON), **by_code}

    def meaning(self, code: int) -> Meaning:
        """The row of `code`, or `otherwise`."""
        return self.meanings.get(code) or Meaning(self.otherwise)

    def action(self, code: int) -> Action:
        return self.meaning(code).action

    def told(self, code: int, **names: object) -> str:
        """The code's name and number, what it means for this request and what to do, for a message."""
        action, text, _ = self.meaning(code)
        return f"{named(code)}: {text.format(**names)}" if text and action is not Action.DENIED else named(code)

    def right(self, code: int, **names: object) -> str:
        """The right that is missing where `code` is DENIED, as `Read on topic orders`."""
        return self.meaning(code).told.format(**names)

    def gravest(self, codes: Iterable[int]) -> int:
        """The code that decides about an answer with these codes (0: there is none)."""
        return min(codes, key=lambda code: _GRAVEST_FIRST.index(self.action(code)), default=0)


_MOVED = "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
# Java retries these too (RetriableException), but asks the same coordinator, which may answer the same for ever if it lags behind.
_ANY_MOVED = f"{_MOVED} LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT NETWORK_EXCEPTION"
_NOT_THE_LEADER = (
    "NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE"
)
_FENCED = "INVALID_PRODUCER_EPOCH PRODUCER_FENCED INVALID_PRODUCER_ID_MAPPING"
_MEMBERS = "ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS FENCED_INSTANCE_ID FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH"
_NO_ID = (Action.DENIED, "Write on transactional id {id}")
_NO_GROUP_READ = (Action.DENIED, "Read on group {group}")
_NO_GROUP = (Action.DENIED, "Describe on group {group}")
_IN_A_TRANSACTION = (
    Row(_ANY_MOVED, Action.COORDINATOR),
    Row("CONCURRENT_TRANSACTIONS", Action.AGAIN),
    Row(_FENCED, Action.FENCED),
    Row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", *_NO_ID),
    Row("INVALID_TXN_STATE TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR", Action.UNKNOWN),
)
_TOO_MANY = "not even one offset fits a batch of __consumer_offsets: raise max.message.bytes (and segment.bytes) of that topic"
_METADATA = "the metadata of an offset is longer than offset.metadata.max.bytes of the brokers: raise that"
_OLD_FORMAT = "message.format.version of __consumer_offsets is older than 0.11: raise it"
_CONSUMER = "a consumer uses the group that holds Ferry's positions ({group}): stop the members of that group"
_TIMESTAMPS = "widen message.timestamp.before.max.ms / message.timestamp.after.max.ms of the remote topic"
_NO_SASL_NOW = "the listener does not expect a login by SASL now: check security.protocol"
_COORDINATOR_LOG = f"the coordinator's log says why; from Kafka 3.7 on it may be that {_TOO_MANY}"

# Broker: KafkaApis.handleApiVersionsRequest, SaslServerAuthenticator.handleApiVersionsRequest.
# Java: NetworkClient.handleApiVersionsResponse, which closes the connection and asks on the next one. kafka-python does the same at the
# beginning of each connection; this table is for Ferry's own request.
API_VERSIONS = RequestKind("ApiVersions", Action.AGAIN, Row("UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED", Action.AGAIN))

# Broker: SaslServerAuthenticator, and KafkaApis on listeners without SASL. Java: SaslClientAuthenticator, which treats any code as a
# refused login. kafka-python logs in and gives Ferry the code; it turns any error of SaslAuthenticate into SASL_AUTHENTICATION_FAILED.
SASL = RequestKind(
    "SaslHandshake and SaslAuthenticate",
    Action.AGAIN,
    Row("UNSUPPORTED_SASL_MECHANISM", Action.REFUSED, "the listener does not offer this mechanism", AuthenticationFailed),
    Row("ILLEGAL_SASL_STATE", Action.REFUSED, _NO_SASL_NOW, AuthenticationFailed),
    Row("SASL_AUTHENTICATION_FAILED", Action.REFUSED, error=AuthenticationFailed),
)

# Broker: ReplicaManager.readFromLog, KafkaApis.handleFetchRequest, FetchResponse. Java: FetchCollector.handleInitializeErrors, which ends
# the application for codes that have no row here (for example INVALID_TOPIC_EXCEPTION and UNSUPPORTED_COMPRESSION_TYPE). Ferry asks again,
# because in a cluster that is being upgraded the next leader may know the request. In the end only this partition stops, naming the code.
FETCH = RequestKind(
    "Fetch",
    Action.LEADER,
    Row(f"{_NOT_THE_LEADER} UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID UNKNOWN_SERVER_ERROR", Action.LEADER),
    Row("FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR", Action.LEADER),
    Row("OFFSET_OUT_OF_RANGE", Action.BOUNDS),
    Row("CORRUPT_MESSAGE", Action.REFUSED, "the log is corrupt there", UnreadableBatch),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Read on topic {topic}"),
)

# Broker: ReplicaManager.fetchOffset, KafkaApis.handleListOffsetRequest, ListOffsetsResponse.
# Java: OffsetFetcherUtils.handleListOffsetResponse.
LIST_OFFSETS = RequestKind(
    "ListOffsets",
    Action.LEADER,
    Row(f"{_NOT_THE_LEADER} LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_SERVER_ERROR", Action.LEADER),
    Row("REQUEST_TIMED_OUT NETWORK_EXCEPTION", Action.LEADER),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Describe on topic {topic}"),
    # Java takes this for "no record is that young". A run would then begin at the wrong offset.
    Row("UNSUPPORTED_FOR_MESSAGE_FORMAT", Action.REFUSED, "records of this old message format have no timestamps"),
)

# Broker: KafkaApis.handleTopicMetadataRequest, MetadataCache. Java: PartitionLeaderStrategy.
METADATA = RequestKind(
    "Metadata",
    Action.LEADER,
    Row("UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID", Action.GONE),
    Row("LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND REPLICA_NOT_AVAILABLE BROKER_NOT_AVAILABLE", Action.LEADER),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Describe on topic {topic}"),
    Row("INVALID_TOPIC_EXCEPTION", Action.REFUSED),
)

# Broker: ReplicaManager.appendRecords, Partition.appendRecordsToLeader, ProducerAppendInfo, LogValidator, AddPartitionsToTxnManager,
# KafkaApis.handleProduceRequest. Java: Sender.completeBatch, TransactionManager.canRetry.
PRODUCE = RequestKind(
    "Produce",
    Action.UNKNOWN,
    Row(f"{_ANY_MOVED} UNKNOWN_TOPIC_OR_PARTITION REPLICA_NOT_AVAILABLE NOT_ENOUGH_REPLICAS", Action.LEADER),
    Row("NOT_ENOUGH_REPLICAS_AFTER_APPEND CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR LISTENER_NOT_FOUND", Action.LEADER),
    Row("FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID", Action.LEADER),
    Row("CORRUPT_MESSAGE", Action.LEADER, "the broker finds the batch damaged"),
    Row("OUT_OF_ORDER_SEQUENCE_NUMBER", Action.OUT_OF_ORDER),
    Row("MESSAGE_TOO_LARGE", Action.TOO_LARGE, "raise max.message.bytes of the remote topic"),
    Row("RECORD_LIST_TOO_LARGE", Action.TOO_LARGE, "raise segment.bytes of the remote topic"),
    Row("INVALID_TIMESTAMP", Action.RECORD_REFUSED, _TIMESTAMPS),
    Row("POLICY_VIOLATION", Action.RECORD_REFUSED, "a policy of the target refuses it"),
    Row("INVALID_RECORD", Action.RECORD_REFUSED),
    Row("INVALID_TOPIC_EXCEPTION", Action.REFUSED, "the broker does not let clients write to this topic"),
    Row("UNSUPPORTED_COMPRESSION_TYPE", Action.REFUSED, "the target does not take this codec: set ferry.compression.type to gzip or none"),
    Row("UNSUPPORTED_FOR_MESSAGE_FORMAT", Action.REFUSED, "raise message.format.version of the remote topic to 0.11 or newer"),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Write on topic {topic}"),
    Row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", *_NO_ID),
    Row("CLUSTER_AUTHORIZATION_FAILED", Action.DENIED, "IdempotentWrite on the cluster"),
    # After INVALID_PRODUCER_EPOCH Java aborts and continues. A lane does not share its id: a process that raised the epoch has replaced it.
    Row(_FENCED, Action.FENCED),
    # Java treats DUPLICATE_SEQUENCE_NUMBER as success. The answer then lacks the offset, which a receipt needs.
    Row("DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID INVALID_TXN_STATE TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR", Action.UNKNOWN),
)

# Broker: KafkaApis.getCoordinator. Java: CoordinatorStrategy, TransactionManager.FindCoordinatorHandler.
FIND_COORDINATOR = RequestKind(
    "FindCoordinator",
    Action.COORDINATOR,
    Row(_MOVED, Action.COORDINATOR),
    Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP_READ),
    Row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", *_NO_ID),
    Row("INVALID_REQUEST INVALID_GROUP_ID", Action.REFUSED, error=GroupFailed),
)

# Broker: TransactionCoordinator.handleInitProducerId, TransactionStateManager, ProducerIdManager. Java: InitProducerIdHandler, which ends
# the application for codes that have no row; a run can wait, and may repeat an init.
INIT_PRODUCER_ID = RequestKind(
    "InitProducerId",
    Action.AGAIN,
    Row(_ANY_MOVED, Action.COORDINATOR),
    Row("CONCURRENT_TRANSACTIONS", Action.AGAIN),
    Row(_FENCED, Action.FENCED),
    Row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", *_NO_ID),
    Row("CLUSTER_AUTHORIZATION_FAILED", Action.DENIED, "IdempotentWrite on the cluster"),
    Row("INVALID_TRANSACTION_TIMEOUT", Action.REFUSED, "transaction.max.timeout.ms is below {timeout} ms: raise it", ConfigError),
)

# Broker: KafkaApis.handleAddPartitionsToTxnRequest, TransactionCoordinator.handleAddPartitionsToTransaction.
# Java: AddPartitionsToTxnHandler.
ADD_PARTITIONS_TO_TXN = RequestKind(
    "AddPartitionsToTxn",
    Action.UNKNOWN,
    *_IN_A_TRANSACTION,
    # OPERATION_NOT_ATTEMPTED comes beside the code of the partition that caused the failure.
    Row("OPERATION_NOT_ATTEMPTED", Action.AGAIN),
    Row("UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID", Action.GONE),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Write on topic {topic}"),
)

# Broker: KafkaApis.handleAddOffsetsToTxnRequest, TransactionCoordinator. Java: AddOffsetsToTxnHandler.
ADD_OFFSETS_TO_TXN = RequestKind("AddOffsetsToTxn", Action.UNKNOWN, *_IN_A_TRANSACTION, Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP_READ))

# Broker: KafkaApis.handleTxnOffsetCommitRequest, OffsetMetadataManager, CoordinatorOperationExceptionHelper, before 4.0 GroupCoordinator
# and GroupMetadataManager.maybeConvertOffsetCommitError. Java: TxnOffsetCommitHandler.
TXN_OFFSET_COMMIT = RequestKind(
    "TxnOffsetCommit",
    Action.UNKNOWN,
    *_IN_A_TRANSACTION,
    # Java asks again until its time is over; in Ferry the other partitions would have to wait.
    Row("UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID", Action.GONE),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Read on topic {topic}"),
    Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP_READ),
    Row(_MEMBERS, Action.REFUSED, _CONSUMER, ReplicatorActive),
    Row("OFFSET_METADATA_TOO_LARGE", Action.REFUSED, _METADATA, ConfigError),
    Row("INVALID_COMMIT_OFFSET_SIZE", Action.REFUSED, _TOO_MANY, ConfigError),
    Row("UNSUPPORTED_FOR_MESSAGE_FORMAT", Action.REFUSED, _OLD_FORMAT, ConfigError),
    Row("UNKNOWN_SERVER_ERROR", Action.UNKNOWN, _COORDINATOR_LOG),
)

# Broker: TransactionCoordinator.handleEndTransaction, TransactionStateManager. Java: EndTxnHandler. INVALID_TXN_STATE: nothing is open.
END_TXN = RequestKind("EndTxn", Action.UNKNOWN, *_IN_A_TRANSACTION)

# Broker: GroupCoordinatorService.fetchOffsets, GroupCoordinator.doFetchOffsets.
# Java: ListConsumerGroupOffsetsHandler, CommitRequestManager.
OFFSET_FETCH = RequestKind(
    "OffsetFetch",
    Action.AGAIN,
    Row(_ANY_MOVED, Action.COORDINATOR),
    Row("UNSTABLE_OFFSET_COMMIT", Action.AGAIN),
    # The offsets of a deleted partition are deleted too.
    Row("UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID GROUP_ID_NOT_FOUND", Action.NOTHING),
    Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Describe on every topic of these offsets"),
    Row("INVALID_GROUP_ID UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH", Action.REFUSED, error=GroupFailed),
)

# Broker: OffsetMetadataManager.validateOffsetCommit, GroupCoordinator.doCommitOffsets, KafkaApis.handleOffsetCommitRequest.
# Java: AlterConsumerGroupOffsetsHandler. Ferry names no member, so a group that has members refuses (ClassicGroup, ConsumerGroup).
OFFSET_COMMIT = RequestKind(
    "OffsetCommit",
    Action.UNKNOWN,
    Row(_MOVED, Action.COORDINATOR),
    Row("REQUEST_TIMED_OUT UNKNOWN_SERVER_ERROR", Action.UNKNOWN, _COORDINATOR_LOG),
    Row("UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID", Action.NOTHING),
    Row(_MEMBERS, Action.REFUSED, "the group has members", ReplicatorActive),
    Row("OFFSET_METADATA_TOO_LARGE", Action.REFUSED, _METADATA, GroupFailed),
    Row("INVALID_COMMIT_OFFSET_SIZE", Action.REFUSED, _TOO_MANY, GroupFailed),
    Row("INVALID_GROUP_ID GROUP_ID_NOT_FOUND", Action.REFUSED, error=GroupFailed),
    Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP_READ),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Read on topic {topic}"),
)

# Broker: GroupCoordinatorService.listGroups. Brokers leave out groups that the user may not describe.
LIST_GROUPS = RequestKind("ListGroups", Action.AGAIN, Row(_MOVED, Action.AGAIN))

# Broker: GroupCoordinatorService.describeGroups. Java: DescribeConsumerGroupsHandler.
DESCRIBE_GROUPS = RequestKind(
    "DescribeGroups",
    Action.AGAIN,
    Row(_ANY_MOVED, Action.COORDINATOR),
    Row("GROUP_ID_NOT_FOUND", Action.NOTHING),
    Row("GROUP_AUTHORIZATION_FAILED", *_NO_GROUP),
    Row("INVALID_GROUP_ID", Action.REFUSED, error=GroupFailed),
)

# As DescribeGroups. Brokers without the feature group.version answer UNSUPPORTED_VERSION; they have no such groups. INVALID_GROUP_ID: the
# name is empty, as that of a classic group may be.
CONSUMER_GROUP_DESCRIBE = RequestKind(
    "ConsumerGroupDescribe",
    Action.AGAIN,
    *DESCRIBE_GROUPS.rows,
    Row("UNSUPPORTED_VERSION INVALID_GROUP_ID", Action.NOTHING),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Describe on every topic that its members read"),
    Row("INVALID_REQUEST", Action.REFUSED, error=GroupFailed),
)

# Broker: KafkaApis.handleDescribeProducersRequest, ReplicaManager.activeProducerState. Java: DescribeProducersHandler.
DESCRIBE_PRODUCERS = RequestKind(
    "DescribeProducers",
    Action.LEADER,
    Row("NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR", Action.LEADER),
    Row("TOPIC_AUTHORIZATION_FAILED", Action.DENIED, "Read on topic {topic}"),
    Row("INVALID_TOPIC_EXCEPTION", Action.REFUSED),
)

# Broker: KafkaApis.handleOffsetForLeaderEpochRequest, ReplicaManager.lastOffsetForLeaderEpoch. Java: OffsetsForLeaderEpochUtils. A user who
# may fetch may ask, so Fetch reports a missing right.
OFFSET_FOR_LEADER_EPOCH = RequestKind(
    "OffsetForLeaderEpoch",
    Action.LEADER,
    Row(f"{_NOT_THE_LEADER} LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION", Action.LEADER),
    Row("TOPIC_AUTHORIZATION_FAILED UNKNOWN_SERVER_ERROR", Action.LEADER),
)

# Broker: TransactionCoordinator.handleListTransactions, handleDescribeTransactions. Ferry shows their answers beside an open transaction
# that it has found already, and looks whether the holder of an id proves it. If a coordinator does not answer, Ferry does not ask again
# until it next reads open transactions, and takes the holder for alive; Java asks at once.
LIST_TRANSACTIONS = RequestKind("ListTransactions", Action.NOTHING, Row(_MOVED, Action.NOTHING))
DESCRIBE_TRANSACTIONS = RequestKind(
    "DescribeTransactions",
    Action.NOTHING,
    Row(f"{_MOVED} TRANSACTIONAL_ID_NOT_FOUND TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_REQUEST", Action.NOTHING),
)

# Broker: KafkaRaftClient.handleDescribeQuorumRequest. Ferry asks only for the cluster's clock, which a run does not need.
DESCRIBE_QUORUM = RequestKind(
    "DescribeQuorum",
    Action.NOTHING,
    Row("NOT_LEADER_OR_FOLLOWER BROKER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION", Action.NOTHING),
    Row("CLUSTER_AUTHORIZATION_FAILED", Action.DENIED, "Describe on the cluster"),
)

# Broker: KafkaApis.handleDescribeLogDirsRequest, ReplicaManager.describeLogDirs: a code for each directory. Sizes only balance the lanes.
DESCRIBE_LOG_DIRS = RequestKind(
    "DescribeLogDirs", Action.NOTHING, Row("KAFKA_STORAGE_ERROR CLUSTER_AUTHORIZATION_FAILED UNKNOWN_SERVER_ERROR", Action.NOTHING)
)

# Broker: AclApis.handleDescribeAcls. Each sync of ACLs asks once; the next sync asks again.
DESCRIBE_ACLS = RequestKind(
    "DescribeAcls",
    Action.AGAIN,
    Row("SECURITY_DISABLED", Action.NOTHING),
    Row("CLUSTER_AUTHORIZATION_FAILED", Action.DENIED, "Describe on the cluster"),
)

# Requests of confluent-kafka's admin client, and errors of its consumers and producers; librdkafka's own codes are below -1 and not here.
# Broker: ReplicationControlManager, ConfigurationControlManager, AclControlManager, ZkAdminManager. A change that these refuse would be
# refused again; an old broker does not have the request.
ADMIN = RequestKind(
    "requests over librdkafka",
    Action.AGAIN,
    Row("TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED", Action.DENIED),
    Row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Action.DENIED),
    Row("INVALID_CONFIG INVALID_PARTITIONS INVALID_REPLICA_ASSIGNMENT INVALID_REQUEST", Action.REFUSED, error=ChangeRefused),
    Row("POLICY_VIOLATION SECURITY_DISABLED INVALID_TOPIC_EXCEPTION", Action.REFUSED, error=ChangeRefused),
    Row("UNKNOWN_TOPIC_OR_PARTITION UNSUPPORTED_VERSION", Action.REFUSED, error=ChangeRefused),
    Row("INVALID_REPLICATION_FACTOR", Action.REFUSED, error=TooFewBrokers),
    Row(f"{_MOVED} REQUEST_TIMED_OUT NOT_CONTROLLER LEADER_NOT_AVAILABLE", Action.AGAIN),
    Row("THROTTLING_QUOTA_EXCEEDED UNKNOWN_SERVER_ERROR", Action.AGAIN),
)
