"""What Ferry does for every error code that a broker may answer: one table for each kind of request (pure).

Kafka's sources say which codes a request may get. The comment above each table names the classes: those that give the codes (Broker), and
the one in Kafka's client that handles them (Java). Ferry does the same as that client; where it does not, a comment says why. `otherwise`
holds for a code without a row: Ferry repeats a read until the caller's time is over; a write may have happened (UNKNOWN).

`docs/answers.md` shows all tables (tools/docs writes it).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ferry.clusters.error_codes import CODES, named
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
    NOTHING = "continues as if there were nothing"
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
    UNKNOWN = "cannot know whether the broker did it: gives up the transaction and reads what was committed"


ASKED_AGAIN = frozenset({Action.AGAIN, Action.LEADER, Action.COORDINATOR})
# Coordinators answer with these if an offset commit holds too many offsets: since Kafka 3.7 with the first, which may also mean something
# else, before that with the other. Ferry then sends fewer at once. The code's row holds only if a single offset is refused.
TOO_MANY_OFFSETS = frozenset({CODES["UNKNOWN_SERVER_ERROR"], CODES["INVALID_COMMIT_OFFSET_SIZE"]})
# A leader answers Produce with these also if it has appended the batch but its replicas have not (DelayedProduce,
# Partition.checkEnoughReplicasReachOffset). If the batch comes again with its sequence number, the leader recognises it.
PERHAPS_APPENDED = frozenset(
    CODES[name]
    for name in (
        *("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"),
        *("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "KAFKA_STORAGE_ERROR"),
    )
)
# An answer holds a code for each partition; the most serious one decides.
_GRAVEST_FIRST = (
    *(Action.FENCED, Action.DENIED, Action.REFUSED, Action.GONE, Action.UNKNOWN),
    *(Action.COORDINATOR, Action.LEADER, Action.AGAIN, Action.NOTHING, Action.GO_ON),
)


class Meaning(NamedTuple):
    """What one code means to one request.

    `told`: for DENIED the right to grant, otherwise what the code means and what to do. The caller fills in names like `{topic}`. `error`:
    the class of the error that REFUSED raises if it is not the error of one partition.
    """

    action: Action
    told: str = ""
    error: type[FerryError] = FerryError


@dataclass(frozen=True)
class RequestKind:
    """One kind of request. `rows`: meanings by code names, several names in one text; `otherwise`: the action for every other code."""

    name: str
    otherwise: Action
    rows: Mapping[str, Meaning]
    meanings: Mapping[int, Meaning] = field(init=False)

    def __post_init__(self) -> None:
        by_code = {CODES[name]: meaning for names, meaning in self.rows.items() for name in names.split()}
        object.__setattr__(self, "meanings", {0: Meaning(Action.GO_ON), **by_code})

    def meaning(self, code: int) -> Meaning:
        """The row of `code`, or `otherwise`."""
        return self.meanings.get(code) or Meaning(self.otherwise)

    def action(self, code: int) -> Action:
        """What to do about `code`."""
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
_FENCED = "INVALID_PRODUCER_EPOCH PRODUCER_FENCED INVALID_PRODUCER_ID_MAPPING"
_MEMBERS = "ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS FENCED_INSTANCE_ID FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH"
_NO_ID = Meaning(Action.DENIED, "Write on transactional id {id}")
_NO_GROUP_READ = Meaning(Action.DENIED, "Read on group {group}")
_NO_GROUP = Meaning(Action.DENIED, "Describe on group {group}")
_IN_A_TRANSACTION = {
    _ANY_MOVED: Meaning(Action.COORDINATOR),
    "CONCURRENT_TRANSACTIONS": Meaning(Action.AGAIN),
    _FENCED: Meaning(Action.FENCED),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NO_ID,
    "INVALID_TXN_STATE TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR": Meaning(Action.UNKNOWN),
}
_TOO_MANY = "not even one offset fits a batch of __consumer_offsets: raise max.message.bytes (and segment.bytes) of that topic"
_METADATA = "the text beside an offset is longer than offset.metadata.max.bytes of the brokers: raise that"
_COORDINATOR_LOG = f"the coordinator's log says why; from Kafka 3.7 on it may be that {_TOO_MANY}"

# Broker: KafkaApis.handleApiVersionsRequest, SaslServerAuthenticator.handleApiVersionsRequest.
# Java: NetworkClient.handleApiVersionsResponse, which closes the connection and asks on the next one. kafka-python does the same at the
# beginning of each connection; this table is for Ferry's own request.
API_VERSIONS = RequestKind("ApiVersions", Action.AGAIN, {"UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED": Meaning(Action.AGAIN)})

# Broker: SaslServerAuthenticator, and KafkaApis on listeners without SASL. Java: SaslClientAuthenticator, which treats any code as a
# refused login. kafka-python logs in and gives Ferry the code; it turns any error of SaslAuthenticate into SASL_AUTHENTICATION_FAILED.
SASL = RequestKind(
    "SaslHandshake and SaslAuthenticate",
    Action.AGAIN,
    {
        "UNSUPPORTED_SASL_MECHANISM": Meaning(Action.REFUSED, "the listener does not offer this mechanism", AuthenticationFailed),
        "ILLEGAL_SASL_STATE": Meaning(
            Action.REFUSED, "the listener does not expect a login by SASL now: check security.protocol", AuthenticationFailed
        ),
        "SASL_AUTHENTICATION_FAILED": Meaning(Action.REFUSED, error=AuthenticationFailed),
    },
)

# Broker: ReplicaManager.readFromLog, KafkaApis.handleFetchRequest, FetchResponse. Java: FetchCollector.handleInitializeErrors, which ends
# the application for codes that have no row here (for example INVALID_TOPIC_EXCEPTION and UNSUPPORTED_COMPRESSION_TYPE). Ferry asks again,
# because in a cluster that is being upgraded the next leader may know the request. In the end only this partition stops, with the code's
# name.
FETCH = RequestKind(
    "Fetch",
    Action.LEADER,
    {
        "NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE "
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID UNKNOWN_SERVER_ERROR FETCH_SESSION_ID_NOT_FOUND "
        "INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR": Meaning(Action.LEADER),
        "OFFSET_OUT_OF_RANGE": Meaning(Action.BOUNDS),
        "CORRUPT_MESSAGE": Meaning(Action.REFUSED, "the log is corrupt there", UnreadableBatch),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Read on topic {topic}"),
    },
)

# Broker: ReplicaManager.fetchOffset, KafkaApis.handleListOffsetRequest, ListOffsetsResponse.
# Java: OffsetFetcherUtils.handleListOffsetResponse.
LIST_OFFSETS = RequestKind(
    "ListOffsets",
    Action.LEADER,
    {
        "NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE "
        "LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_SERVER_ERROR REQUEST_TIMED_OUT NETWORK_EXCEPTION": Meaning(Action.LEADER),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on topic {topic}"),
        # Java takes this for "no record is that young". A run would then begin at the wrong offset.
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": Meaning(Action.REFUSED, "records of this old message format have no timestamps"),
    },
)

# Broker: KafkaApis.handleTopicMetadataRequest, MetadataCache. Java: PartitionLeaderStrategy.
METADATA = RequestKind(
    "Metadata",
    Action.LEADER,
    {
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID": Meaning(Action.GONE),
        "LEADER_NOT_AVAILABLE LISTENER_NOT_FOUND REPLICA_NOT_AVAILABLE BROKER_NOT_AVAILABLE": Meaning(Action.LEADER),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on topic {topic}"),
        "INVALID_TOPIC_EXCEPTION": Meaning(Action.REFUSED),
    },
)

# Broker: ReplicaManager.appendRecords, Partition.appendRecordsToLeader, ProducerAppendInfo, LogValidator, AddPartitionsToTxnManager,
# KafkaApis.handleProduceRequest. Java: Sender.completeBatch, TransactionManager.canRetry.
PRODUCE = RequestKind(
    "Produce",
    Action.UNKNOWN,
    {
        "UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT REPLICA_NOT_AVAILABLE NETWORK_EXCEPTION "
        "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND "
        "CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR LISTENER_NOT_FOUND FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH THROTTLING_QUOTA_EXCEEDED "
        "UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID": Meaning(Action.LEADER),
        "CORRUPT_MESSAGE": Meaning(Action.LEADER, "the broker finds the batch damaged"),
        "OUT_OF_ORDER_SEQUENCE_NUMBER": Meaning(Action.OUT_OF_ORDER),
        "MESSAGE_TOO_LARGE": Meaning(Action.TOO_LARGE, "raise max.message.bytes of the remote topic"),
        "RECORD_LIST_TOO_LARGE": Meaning(Action.TOO_LARGE, "raise segment.bytes of the remote topic"),
        "INVALID_TIMESTAMP": Meaning(
            Action.RECORD_REFUSED, "widen message.timestamp.before.max.ms / message.timestamp.after.max.ms of the remote topic"
        ),
        "POLICY_VIOLATION": Meaning(Action.RECORD_REFUSED, "a policy of the target refuses it"),
        "INVALID_RECORD": Meaning(Action.RECORD_REFUSED, "the remote topic does not accept such records (a compacted topic needs keys)"),
        "INVALID_TOPIC_EXCEPTION": Meaning(Action.REFUSED, "the broker does not let clients write to this topic"),
        "UNSUPPORTED_COMPRESSION_TYPE": Meaning(Action.REFUSED, "the target does not know this codec"),
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": Meaning(Action.REFUSED, "raise message.format.version of the remote topic to 0.11 or newer"),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Write on topic {topic}"),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NO_ID,
        "CLUSTER_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "IdempotentWrite on the cluster"),
        # After INVALID_PRODUCER_EPOCH Java aborts and continues. A lane does not share its id: whoever raised the epoch has replaced it.
        _FENCED: Meaning(Action.FENCED),
        # Java treats DUPLICATE_SEQUENCE_NUMBER as success. The answer then lacks the offset, which a receipt needs.
        "DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID INVALID_TXN_STATE TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR": Meaning(
            Action.UNKNOWN
        ),
    },
)

# Broker: KafkaApis.getCoordinator. Java: CoordinatorStrategy, TransactionManager.FindCoordinatorHandler.
FIND_COORDINATOR = RequestKind(
    "FindCoordinator",
    Action.COORDINATOR,
    {
        _MOVED: Meaning(Action.COORDINATOR),
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP_READ,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NO_ID,
        "INVALID_REQUEST INVALID_GROUP_ID": Meaning(Action.REFUSED, error=GroupFailed),
    },
)

# Broker: TransactionCoordinator.handleInitProducerId, TransactionStateManager, ProducerIdManager. Java: InitProducerIdHandler, which ends
# the application for codes that have no row; a run can wait, and may repeat an init.
INIT_PRODUCER_ID = RequestKind(
    "InitProducerId",
    Action.AGAIN,
    {
        _ANY_MOVED: Meaning(Action.COORDINATOR),
        "CONCURRENT_TRANSACTIONS": Meaning(Action.AGAIN),
        _FENCED: Meaning(Action.FENCED),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NO_ID,
        "CLUSTER_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "IdempotentWrite on the cluster"),
        "INVALID_TRANSACTION_TIMEOUT": Meaning(Action.REFUSED, "transaction.max.timeout.ms is below {timeout} ms: raise it", ConfigError),
    },
)

# Broker: KafkaApis.handleAddPartitionsToTxnRequest, TransactionCoordinator.handleAddPartitionsToTransaction.
# Java: AddPartitionsToTxnHandler.
ADD_PARTITIONS_TO_TXN = RequestKind(
    "AddPartitionsToTxn",
    Action.UNKNOWN,
    {
        **_IN_A_TRANSACTION,
        # OPERATION_NOT_ATTEMPTED comes beside the code of the partition that caused the failure.
        "OPERATION_NOT_ATTEMPTED": Meaning(Action.AGAIN),
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID": Meaning(Action.GONE),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Write on topic {topic}"),
    },
)

# Broker: KafkaApis.handleAddOffsetsToTxnRequest, TransactionCoordinator. Java: AddOffsetsToTxnHandler.
ADD_OFFSETS_TO_TXN = RequestKind(
    "AddOffsetsToTxn",
    Action.UNKNOWN,
    {
        **_IN_A_TRANSACTION,
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP_READ,
    },
)

# Broker: KafkaApis.handleTxnOffsetCommitRequest, OffsetMetadataManager, CoordinatorOperationExceptionHelper, before 4.0 GroupCoordinator
# and GroupMetadataManager.maybeConvertOffsetCommitError. Java: TxnOffsetCommitHandler.
TXN_OFFSET_COMMIT = RequestKind(
    "TxnOffsetCommit",
    Action.UNKNOWN,
    {
        **_IN_A_TRANSACTION,
        # Java asks again until its time is over; in Ferry the other partitions would have to wait.
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID": Meaning(Action.GONE),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Read on topic {topic}"),
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP_READ,
        _MEMBERS: Meaning(
            Action.REFUSED, "a consumer uses group {group}, which holds Ferry's positions: stop the members of that group", ReplicatorActive
        ),
        "OFFSET_METADATA_TOO_LARGE": Meaning(Action.REFUSED, _METADATA, ConfigError),
        "INVALID_COMMIT_OFFSET_SIZE": Meaning(Action.REFUSED, _TOO_MANY, ConfigError),
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": Meaning(
            Action.REFUSED, "message.format.version of __consumer_offsets is older than 0.11: raise it", ConfigError
        ),
        "UNKNOWN_SERVER_ERROR": Meaning(Action.UNKNOWN, _COORDINATOR_LOG),
    },
)

# Broker: TransactionCoordinator.handleEndTransaction, TransactionStateManager. Java: EndTxnHandler. INVALID_TXN_STATE: nothing is open.
END_TXN = RequestKind("EndTxn", Action.UNKNOWN, _IN_A_TRANSACTION)

# Broker: GroupCoordinatorService.fetchOffsets, GroupCoordinator.doFetchOffsets.
# Java: ListConsumerGroupOffsetsHandler, CommitRequestManager.
OFFSET_FETCH = RequestKind(
    "OffsetFetch",
    Action.AGAIN,
    {
        _ANY_MOVED: Meaning(Action.COORDINATOR),
        "UNSTABLE_OFFSET_COMMIT": Meaning(Action.AGAIN),
        # The offsets of a deleted partition are deleted too.
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID GROUP_ID_NOT_FOUND": Meaning(Action.NOTHING),
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP,
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on every topic of these offsets"),
        "INVALID_GROUP_ID UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH": Meaning(Action.REFUSED, error=GroupFailed),
    },
)

# Broker: OffsetMetadataManager.validateOffsetCommit, GroupCoordinator.doCommitOffsets, KafkaApis.handleOffsetCommitRequest.
# Java: AlterConsumerGroupOffsetsHandler. Ferry names no member, so a group that has members refuses (ClassicGroup, ConsumerGroup).
OFFSET_COMMIT = RequestKind(
    "OffsetCommit",
    Action.UNKNOWN,
    {
        _MOVED: Meaning(Action.COORDINATOR),
        "REQUEST_TIMED_OUT UNKNOWN_SERVER_ERROR": Meaning(Action.UNKNOWN, _COORDINATOR_LOG),
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID": Meaning(Action.NOTHING),
        _MEMBERS: Meaning(Action.REFUSED, "the group has members", ReplicatorActive),
        "OFFSET_METADATA_TOO_LARGE": Meaning(Action.REFUSED, _METADATA, GroupFailed),
        "INVALID_COMMIT_OFFSET_SIZE": Meaning(Action.REFUSED, _TOO_MANY, GroupFailed),
        "INVALID_GROUP_ID GROUP_ID_NOT_FOUND": Meaning(Action.REFUSED, error=GroupFailed),
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP_READ,
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Read on topic {topic}"),
    },
)

# Broker: GroupCoordinatorService.listGroups. Brokers leave out groups that the user may not describe.
LIST_GROUPS = RequestKind("ListGroups", Action.AGAIN, {_MOVED: Meaning(Action.AGAIN)})

# Broker: GroupCoordinatorService.describeGroups. Java: DescribeConsumerGroupsHandler.
DESCRIBE_GROUPS = RequestKind(
    "DescribeGroups",
    Action.AGAIN,
    {
        _ANY_MOVED: Meaning(Action.COORDINATOR),
        "GROUP_ID_NOT_FOUND": Meaning(Action.NOTHING),
        "GROUP_AUTHORIZATION_FAILED": _NO_GROUP,
        "INVALID_GROUP_ID": Meaning(Action.REFUSED, error=GroupFailed),
    },
)

# As DescribeGroups. Brokers without the feature group.version answer UNSUPPORTED_VERSION; they have no such groups.
CONSUMER_GROUP_DESCRIBE = RequestKind(
    "ConsumerGroupDescribe",
    Action.AGAIN,
    {
        **DESCRIBE_GROUPS.rows,
        "UNSUPPORTED_VERSION": Meaning(Action.NOTHING),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on every topic that its members read"),
        "INVALID_REQUEST": Meaning(Action.REFUSED, error=GroupFailed),
    },
)

# Broker: KafkaApis.handleDescribeProducersRequest, ReplicaManager.activeProducerState. Java: DescribeProducersHandler.
DESCRIBE_PRODUCERS = RequestKind(
    "DescribeProducers",
    Action.LEADER,
    {
        "NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION KAFKA_STORAGE_ERROR": Meaning(Action.LEADER),
        "TOPIC_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Read on topic {topic}"),
        "INVALID_TOPIC_EXCEPTION": Meaning(Action.REFUSED),
    },
)

# Broker: KafkaApis.handleOffsetForLeaderEpochRequest, ReplicaManager.lastOffsetForLeaderEpoch. Java: OffsetsForLeaderEpochUtils. A user who
# may fetch may ask, so Fetch reports a missing right.
OFFSET_FOR_LEADER_EPOCH = RequestKind(
    "OffsetForLeaderEpoch",
    Action.LEADER,
    {
        "NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE "
        "LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED UNKNOWN_SERVER_ERROR": Meaning(Action.LEADER),
    },
)

# Broker: TransactionCoordinator.handleListTransactions, handleDescribeTransactions. Ferry shows their answers beside an open transaction
# that it has found already. If a coordinator does not answer, Ferry does not ask again until it next reads open transactions; Java asks at
# once.
LIST_TRANSACTIONS = RequestKind("ListTransactions", Action.NOTHING, {_MOVED: Meaning(Action.NOTHING)})
DESCRIBE_TRANSACTIONS = RequestKind(
    "DescribeTransactions",
    Action.NOTHING,
    {f"{_MOVED} TRANSACTIONAL_ID_NOT_FOUND TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_REQUEST": Meaning(Action.NOTHING)},
)

# Broker: KafkaRaftClient.handleDescribeQuorumRequest. Ferry asks only for the cluster's clock, which a run does not need.
DESCRIBE_QUORUM = RequestKind(
    "DescribeQuorum",
    Action.NOTHING,
    {
        "NOT_LEADER_OR_FOLLOWER BROKER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION": Meaning(Action.NOTHING),
        "CLUSTER_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on the cluster"),
    },
)

# Broker: AclApis.handleDescribeAcls. Each sync of ACLs asks once; the next sync asks again.
DESCRIBE_ACLS = RequestKind(
    "DescribeAcls",
    Action.AGAIN,
    {
        "SECURITY_DISABLED": Meaning(Action.NOTHING),
        "CLUSTER_AUTHORIZATION_FAILED": Meaning(Action.DENIED, "Describe on the cluster"),
    },
)

# Requests of confluent-kafka's admin client, and errors of its consumers and producers; librdkafka's own codes are below -1 and not here.
# Broker: ReplicationControlManager, ConfigurationControlManager, AclControlManager, ZkAdminManager. A change that these refuse would be
# refused again; an old broker does not have the request.
ADMIN = RequestKind(
    "requests over librdkafka",
    Action.AGAIN,
    {
        "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Meaning(
            Action.DENIED
        ),
        "INVALID_CONFIG INVALID_PARTITIONS INVALID_REPLICA_ASSIGNMENT INVALID_REQUEST POLICY_VIOLATION "
        "SECURITY_DISABLED INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION UNSUPPORTED_VERSION": Meaning(
            Action.REFUSED, error=ChangeRefused
        ),
        "INVALID_REPLICATION_FACTOR": Meaning(Action.REFUSED, error=TooFewBrokers),
        "REQUEST_TIMED_OUT NOT_CONTROLLER LEADER_NOT_AVAILABLE THROTTLING_QUOTA_EXCEEDED COORDINATOR_LOAD_IN_PROGRESS "
        "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR UNKNOWN_SERVER_ERROR": Meaning(Action.AGAIN),
    },
)
