"""Reads what Ferry keeps on the target: the state topic and the ledger.

State and receipts are read up to the end that the topic has when the reading begins; the newest record of each key counts.

A command asks for the flow's state at several moments: for the plan, after fencing, when syncs are due, for the report. A later reading
begins at the last record that the one before has seen. If that record is not there any more (the topic was truncated, compacted or created
again), it begins at the start of the topic. So does the reading of a copy after fencing, because that one decides about records. The fence
itself reads the topic too, because for it aborted records count (copying/fencing.py).

Of the state of other flows only claims count, and only if the flow has not claimed all its remote topics itself. They are read on in the
same way.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.net.client_cache import kept_clients, shared
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.net.shared_connection import Asked
from ferry.config import Flow
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import Receipt, covered, decode_receipt, glance
from ferry.ledger.state import CLAIM_KEY, FLOW_KEY, SYNC_KEY, Claim, FlowState, SyncDone, decode_state, fold_state
from ferry.ledger.topic_ids import TopicIds, valid_receipts
from ferry.policy.naming import is_state_topic
from ferry.wire.ranges import Ranges

# After this a reading begins at the start of the topic: long before the tombstones of removed keys expire.
KNOWN_SECONDS = 30.0


@dataclass
class _Known:
    """What a command has read of a state topic: the newest value of each key, and the last record of each partition.

    Two logs that hold the same record, written under the same leader epoch, hold the same records before it (KIP-101).
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    last: dict[int, InternalRecord] = field(default_factory=dict)
    read: float = 0.0

    def close(self) -> None:
        self.values, self.last = {}, {}


def _ask_state_records(
    flow: Flow, topic: str, *, committed: bool, complete: bool, anew: bool = False, keys: bytes = b""
) -> Asked[list[tuple[bytes, bytes | None]]]:
    """Keys and values of a state topic of the target in log order, without some that later ones replace. Options as of InternalTopicReader.

    `keys`: how keys of records begin; for each topic always the same.
    """
    reader = InternalTopicReader(flow.target, committed=committed)
    with shared(f"records of {topic}", _Known, flow) as known:
        if anew or time.monotonic() - known.read > KNOWN_SECONDS:
            known.close()
        begun = dict(known.last)
        read = reader.read(topic, {partition: last.offset for partition, last in begun.items()}, complete=complete)

    def records() -> list[tuple[bytes, bytes | None]]:
        came = list(read)
        if not all(last in came for last in begun.values()) or not begun.keys() <= known.last.keys():
            known.close()
            came = list(reader.read(topic, complete=complete))
        ends = {partition: last.offset for partition, last in known.last.items()}
        came = [record for record in came if record.offset > ends.get(record.partition, -1)]  # others may have read on meanwhile
        new = [(record.key, record.value) for record in came if record.key.startswith(keys)]
        if not committed:  # open transactions may be aborted later
            return [*known.values.items(), *new]
        known.values.update(new)
        known.last.update((record.partition, record) for record in came)
        known.read = time.monotonic()
        return list(known.values.items())

    return Asked(records)


def ask_syncs_done(flow: Flow) -> Asked[Mapping[str, SyncDone]]:
    """When each sync of the flow was last done. NewerFormat when a newer Ferry has had the flow.

    Asked before anything is written or fenced. Flow records of open transactions count too: a run of the newer Ferry may be under way.
    """
    where = place_of(flow.target, flow.state_topic)

    def done(records: list[tuple[bytes, bytes | None]]) -> Mapping[str, SyncDone]:
        for key, value in records:
            if key.startswith(FLOW_KEY) and value is not None:
                decode_state(key, value, where)
        return fold_state(((key, value) for key, value in records if key.startswith(SYNC_KEY)), where).syncs

    return _ask_state_records(flow, flow.state_topic, committed=False, complete=False).then(done)


def read_syncs_done(flow: Flow) -> Mapping[str, SyncDone]:
    """When each sync of the flow was last done. Errors and open transactions as in `ask_syncs_done`."""
    with kept_clients():
        return ask_syncs_done(flow).answer()


def refuse_newer_state(flow: Flow) -> None:
    """NewerFormat as of `ask_syncs_done`."""
    read_syncs_done(flow)


def read_state(flow: Flow, target_topics: Collection[str], *, stable: bool, asked: Asked[FlowState] | None = None) -> FlowState:
    """The flow's own state (`asked`: for it already), from the topic's start if `stable`."""
    if asked is None and flow.state_topic not in target_topics:
        return FlowState()
    with kept_clients():
        return (asked or ask_own_state(flow, stable=stable, anew=stable)).answer()


def read_claims(flow: Flow, target_topics: Collection[str], own: Mapping[str, Claim], remote_topics: Iterable[str]) -> dict[str, str]:
    """By remote topic, the flow that writes to it; complete for `remote_topics`. `own`: what the flow itself has claimed, which wins.

    Where an open transaction begins, the reading ends.
    """
    if own.keys() >= set(remote_topics):
        return {topic: claim.flow for topic, claim in own.items()}
    others = [name for name in target_topics if is_state_topic(name) and name != flow.state_topic]
    with kept_clients():
        asked = {name: _ask_state_records(flow, name, committed=True, complete=False, keys=CLAIM_KEY) for name in others}
        found = [fold_state(records.answer(), place_of(flow.target, name)).claims for name, records in asked.items()]
    return {topic: claim.flow for claims in (*found, own) for topic, claim in claims.items()}


def ask_own_state(flow: Flow, *, stable: bool, keys: bytes | tuple[bytes, ...] = b"", anew: bool = False) -> Asked[FlowState]:
    """The flow's own state; empty when its topic is missing.

    `stable`: wait for open transactions. `keys`: how keys of records begin. `anew`: begin at the start of the topic.
    """
    where = place_of(flow.target, flow.state_topic)
    asked = _ask_state_records(flow, flow.state_topic, committed=True, complete=stable, anew=anew)
    return asked.then(lambda records: fold_state(((key, value) for key, value in records if key.startswith(keys)), where))


def read_own_state(flow: Flow, *, stable: bool, keys: bytes | tuple[bytes, ...] = b"") -> FlowState:
    """The flow's own state; empty when its topic is missing. Arguments as in `ask_own_state`."""
    with kept_clients():
        return ask_own_state(flow, stable=stable, keys=keys).answer()


def read_receipts(flow: Flow, wanted: Iterable[tuple[str, int]] | None = None) -> list[Receipt]:
    """Every receipt of the flow's ledger (of the partitions `wanted`), read to the bound of now; newest per key."""
    topic = flow.ledger_topic
    where = place_of(flow.target, topic)
    newest: dict[bytes, bytes] = {}  # decoded at the end: until compaction, the ledger holds a receipt as often as it has grown
    only = None if wanted is None else set(wanted)
    with InternalTopicReader(flow.target) as reader:
        width = len(reader.partitions(topic))
        shares = None if only is None else {TopicPartition(*key).share(width) for key in only} if width else set()
        for record in reader.read(topic, only=shares):
            if record.value is None:
                newest.pop(record.key, None)
                continue
            seen = None if only is None else glance(record.key, record.value)
            if only is not None and seen is not None and (seen.topic, seen.partition) not in only:
                continue
            newest[record.key] = record.value
    receipts = [decode_receipt(key, value, where) for key, value in newest.items()]
    return receipts if only is None else [receipt for receipt in receipts if receipt.key in only]


def read_coverage(flow: Flow, today: Mapping[TopicPartition, TopicIds]) -> dict[TopicPartition, Ranges]:
    """What the ledger covers of the source partitions that `today` names. Receipts of recreated topics are void (topic_ids.py)."""
    return {key: covered(receipts) for key, receipts in valid_receipts(read_receipts(flow, today), today).items()}
