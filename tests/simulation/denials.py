"""Rights that are denied, each with the questions that the user then asks: a real broker must answer as the simulated cluster does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.asks import (
    V1_END,
    V1_OFFSETS,
    V1_PRODUCE,
    AddOffsets,
    AddPartitions,
    Ask,
    CommitInTransaction,
    DeleteRecords,
    End,
    EpochEnd,
    Fetch,
    Init,
    ListOffsets,
    Produce,
    Producers,
)
from tests.simulation.asks_of_admins import (
    AlterConfigs,
    Commit,
    CreatePartitions,
    CreateTopics,
    DeleteGroups,
    DeleteTopics,
    DescribeConfigs,
    DescribeGroups,
    DescribeTransactions,
    FindCoordinators,
    ListGroups,
    ListTransactions,
    Metadata,
    Offsets,
)
from tests.simulation.rights import Kind, Operation

TOPIC, OTHER, GROUP, ID = "denied", "other", "group", "id"
Denial = tuple[Operation, Kind, str]

BEFORE: Sequence[Ask] = [
    CreateTopics(TOPIC),
    CreateTopics(OTHER),
    FindCoordinators((GROUP,)),
    FindCoordinators((ID,), 1),
    Produce(TOPIC),
    Produce(OTHER),
    Commit(GROUP, TOPIC, offset=1),
    Commit(GROUP, OTHER, offset=1),
    Init(ID),
]
DENIALS: Mapping[Denial, Sequence[Ask]] = {
    (Operation.READ, Kind.TOPIC, TOPIC): [
        Fetch(TOPIC),
        Fetch(TOPIC, version=11),
        Fetch(TOPIC, partition=7),
        Producers(TOPIC),
        Commit(GROUP, TOPIC, offset=2),
        CommitInTransaction(ID, GROUP, TOPIC, offset=2, version=V1_OFFSETS),
        Metadata((TOPIC,), operations=True),
    ],
    (Operation.WRITE, Kind.TOPIC, TOPIC): [
        Produce(TOPIC),
        Produce(TOPIC, partition=7),
        Produce(TOPIC, version=11),
        AddPartitions(ID, TOPIC, beside=(OTHER,)),
        AddPartitions(ID, TOPIC, beside=("missing",)),
        Metadata((TOPIC,), operations=True),
    ],
    (Operation.DESCRIBE, Kind.TOPIC, TOPIC): [
        Metadata((TOPIC,)),
        ListOffsets(TOPIC),
        EpochEnd(TOPIC),
        Offsets(GROUP),
        Offsets(GROUP, TOPIC),
        Fetch(TOPIC),
    ],
    (Operation.DELETE, Kind.TOPIC, TOPIC): [DeleteRecords(TOPIC), DeleteTopics(TOPIC)],
    (Operation.ALTER, Kind.TOPIC, TOPIC): [CreatePartitions(TOPIC, 2)],
    (Operation.DESCRIBE_CONFIGS, Kind.TOPIC, TOPIC): [DescribeConfigs(TOPIC)],
    (Operation.ALTER_CONFIGS, Kind.TOPIC, TOPIC): [AlterConfigs(TOPIC, "retention.ms", "1")],
    (Operation.READ, Kind.GROUP, GROUP): [
        Commit(GROUP, OTHER, offset=2),
        Commit(GROUP, "missing", offset=2),
        CommitInTransaction(ID, GROUP, OTHER, offset=2, version=V1_OFFSETS),
        CommitInTransaction(ID, GROUP, "missing", offset=2, version=V1_OFFSETS),
        AddOffsets(ID, GROUP),
    ],
    (Operation.DESCRIBE, Kind.GROUP, GROUP): [
        Offsets(GROUP),
        Offsets(GROUP, OTHER),
        FindCoordinators((GROUP,)),
        DescribeGroups(GROUP),
        ListGroups(),
    ],
    (Operation.DELETE, Kind.GROUP, GROUP): [DeleteGroups(GROUP)],
    (Operation.WRITE, Kind.TRANSACTIONAL_ID, ID): [
        Init(ID),
        AddPartitions(ID, OTHER),
        AddPartitions(ID, "missing"),
        Produce(OTHER, writer="w", id=ID, version=V1_PRODUCE),
        AddOffsets(ID, GROUP),
        CommitInTransaction(ID, GROUP, OTHER, offset=2, version=V1_OFFSETS),
        CommitInTransaction(ID, GROUP, "missing", offset=2, version=V1_OFFSETS),
        End(ID, version=V1_END),
    ],
    (Operation.DESCRIBE, Kind.TRANSACTIONAL_ID, ID): [FindCoordinators((ID,), 1), DescribeTransactions(ID), ListTransactions()],
}
