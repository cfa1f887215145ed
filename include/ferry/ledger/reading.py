"""Reads what Ferry keeps on the target: the state topic and the ledger.

State and receipts are read up to the end that the topic has when the reading begins; the newest record of each key counts.
"""

from collections.abc import Iterable, Mapping

from ferry.clusters.describe import TopicDescription
from ferry.clusters.internal_reader import InternalTopicReader
from ferry.clusters.kept import kept_clients
from ferry.clusters.partitions import TopicPartition
from ferry.clusters.shared_connection import Asked
from ferry.config import Flow
from ferry.ledger.formats import place_of
from ferry.ledger.receipts import Receipt, covered, decode_receipt, glance
from ferry.ledger.state import CLAIM_KEY, FLOW_KEY, SYNC_KEY, FlowState, SyncDone, decode_state, fold_state
from ferry.ledger.topic_ids import TopicIds, valid_receipts
from ferry.policy.naming import STATE_PREFIX, STATE_SUFFIX
from ferry.wire.ranges import Ranges


def ask_syncs_done(flow: Flow) -> Asked[Mapping[str, SyncDone]]:
    """When each sync of the flow was last done. NewerFormat when a newer Ferry has had the flow.

    Asked before anything is written or fenced. Flow records of open transactions count too: a run of the newer Ferry may be under way.
    """
    topic = flow.state_topic
    read = InternalTopicReader(flow.target, committed=False).read(topic, complete=False)

    def done() -> Mapping[str, SyncDone]:
        records = [record for record in read if record.value is not None]
        for record in records:
            if record.key.startswith(FLOW_KEY):
                decode_state(record.key, record.value or b"", place_of(flow.target, topic))
        found = ((record.key, record.value) for record in records if record.key.startswith(SYNC_KEY))
        return fold_state(found, place_of(flow.target, topic)).syncs

    return Asked(done)


def read_syncs_done(flow: Flow) -> Mapping[str, SyncDone]:
    """As `ask_syncs_done`."""
    with kept_clients():
        return ask_syncs_done(flow).answer()


def refuse_newer_state(flow: Flow) -> None:
    """NewerFormat as of `ask_syncs_done`."""
    read_syncs_done(flow)


def read_state(
    flow: Flow, target_topics: Mapping[str, TopicDescription], *, settled: bool, asked: Asked[FlowState] | None = None
) -> tuple[FlowState, dict[str, str]]:
    """The flow's own state (`asked`: for it already), and the claims of every flow into the target."""
    own = flow.state_topic
    states = {
        name: found.partitions for name, found in target_topics.items() if name.startswith(STATE_PREFIX) and name.endswith(STATE_SUFFIX)
    }
    others: dict[str, list[tuple[bytes, bytes | None]]] = {name: [] for name in states if name != own}
    with InternalTopicReader(flow.target) as reader:
        asked = asked or (ask_own_state(flow, settled=settled) if own in states else Asked(FlowState))
        for name, record in reader.glance({name: states[name] for name in others}):
            if record.key.startswith(CLAIM_KEY):
                others[name].append((record.key, record.value))
        mine = asked.answer()
    folded = [*(fold_state(records, place_of(flow.target, name)) for name, records in others.items()), mine]
    return mine, {claim.remote_topic: claim.flow for state in folded for claim in state.claims.values()}


def ask_own_state(flow: Flow, *, settled: bool, keys: bytes | tuple[bytes, ...] = b"") -> Asked[FlowState]:
    """The flow's own state; empty when its topic is missing. `settled`: wait for open transactions. `keys`: how keys of records begin."""
    topic = flow.state_topic
    read = InternalTopicReader(flow.target).read(topic, complete=settled)
    own = ((record.key, record.value) for record in read if record.key.startswith(keys))
    return Asked(lambda: fold_state(own, place_of(flow.target, topic)))


def read_own_state(flow: Flow, *, settled: bool, keys: bytes | tuple[bytes, ...] = b"") -> FlowState:
    """As `ask_own_state`."""
    with kept_clients():
        return ask_own_state(flow, settled=settled, keys=keys).answer()


def read_receipts(flow: Flow, wanted: Iterable[tuple[str, int]] | None = None) -> list[Receipt]:
    """Every receipt of the flow's ledger (of the partitions `wanted`), read to the bound of now; newest per key."""
    topic = flow.ledger_topic
    where = place_of(flow.target, topic)
    newest: dict[bytes, Receipt] = {}
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
            receipt = decode_receipt(record.key, record.value, where)
            if only is None or receipt.key in only:
                newest[record.key] = receipt
    return list(newest.values())


def read_coverage(flow: Flow, today: Mapping[TopicPartition, TopicIds]) -> dict[TopicPartition, Ranges]:
    """What the ledger covers of the source partitions that `today` names. Receipts of recreated topics are void (topic_ids.py)."""
    return {key: covered(receipts) for key, receipts in valid_receipts(read_receipts(flow, today), today).items()}
