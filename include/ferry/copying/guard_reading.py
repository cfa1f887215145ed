"""Reads which records the flow in the other direction wrote into this flow's source, and adds them to the facts about the partitions.

The order makes it safe. First the ends of the partitions are known; then Ferry reads the other flow's ledger to its high watermark.
Receipts of records below such an end were appended before their transaction ended, so they are all there. Ferry need not wait for open
transactions: the other flow wrote the offsets that their receipts name, whether the transactions are committed or not. Receipts that an
operator declared are different: they count only when they are committed.

Finally Ferry asks the source where the log of each leader epoch that receipts name ends today.

It does not matter whether the config file has the other flow, only whether its ledger is on the source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferry.clusters.admin.describe import TopicDescription
from ferry.clusters.logs.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.logs.leader_epochs import epoch_ends
from ferry.clusters.net.leaders import NO_TOPIC_ID
from ferry.clusters.net.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.loop_guard import DECLARED, GuardDraft, LedgerRead, PartitionGuard, both_ways, tells_of, unexplained_partitions
from ferry.copying.partition_plan import PartitionFacts
from ferry.errors import ConfigError
from ferry.ledger.formats import place_of
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.receipts import Receipt, decode_receipt, glance
from ferry.ledger.state import HEAD_KEY, FlowState, Head, decode_state, fold_state
from ferry.ledger.topic_ids import PartitionPair
from ferry.policy.naming import STATE_PREFIX, STATE_SUFFIX, is_state_topic, ledger_topic, state_topic
from ferry.wire.ranges import within


def guarded(
    opened: OpenFlow, facts: Iterable[PartitionFacts], source_topics: Mapping[str, TopicDescription], *, stable: bool
) -> tuple[PartitionFacts, ...]:
    """The facts, with the guard. `stable`: wait for declarations whose transaction is open.

    ConfigError if both flows must not run together. If no remote topic has its source topic's name, no guard is needed.
    """
    flow, found = opened.flow, tuple(facts)
    if not found or (flow.policy.renames and all(entry.topic != entry.remote_topic for entry in found)):
        return found
    pairs = {entry.topic: entry for entry in found}
    drafts = {entry.key: GuardDraft(_lowest(entry)) for entry in found}
    ledger = _Ledger(flow, pairs, drafts)
    reader = opened.source.reader(committed=False)
    _refuse_other_alias(flow, reader, pairs, source_topics)
    other = _state(flow, reader)
    two_way = both_ways(other.heads.values(), pairs)
    if two_way:
        _refuse_two_ways(flow, other, min(two_way))
    ledger.read(reader)
    broken: frozenset[tuple[str, int]] = frozenset()
    if other.heads or ledger.declaring:
        reader = opened.source.reader()
        heads = _state(flow, reader).heads.values()
        broken = unexplained_partitions(heads, pairs, _ledger_id(flow, reader, source_topics, heads))
        ledger.read_declarations(reader, complete=stable)
    ledger_id = (source_topics[ledger.topic].topic_id or "") if ledger.topic in source_topics else ""
    ends = epoch_ends(opened.source, {key: draft.epochs for key, draft in drafts.items() if draft.epochs})

    def guard(entry: PartitionFacts) -> PartitionGuard:
        draft = drafts[entry.key]
        excluded, unclear_below = draft.finish(ends.get(entry.key))
        return PartitionGuard(
            excluded=within(excluded, _lowest(entry), entry.end),
            unclear_below=unclear_below,
            broken=entry.key in broken,
            two_way=entry.topic in two_way,
            unasked=bool(draft.epochs) and entry.key not in ends,
            read=LedgerRead(ledger_id, ledger.positions, draft.beyond(entry.end)),
        )

    return tuple(replace(entry, guard=guard(entry)) for entry in found)


class _Ledger:
    """The ledger of the flow in the other direction, at the source. Its records about a partition go into the draft of the partition."""

    def __init__(self, flow: Flow, pairs: Mapping[str, PartitionPair], drafts: Mapping[TopicPartition, GuardDraft]) -> None:
        self.topic = ledger_topic(flow.target.alias)
        self._pairs, self._drafts, self._where = pairs, drafts, place_of(flow.source, self.topic)
        self.positions: dict[int, int] = {}  # by partition of the ledger: the offset up to which it was read
        self.declaring: set[int] = set()  # partitions of the ledger with declarations

    def read(self, reader: InternalTopicReader) -> None:
        """Read what the flow wrote. `reader`: it also reads records of transactions that are open or were aborted."""
        for record in reader.read(self.topic):
            self.positions[record.partition] = record.offset + 1
            if told := concerned(record, self._pairs, self._drafts, self._where):
                draft, receipt = told
                draft.add(receipt)
                self.declaring.update({record.partition} if receipt.kind in DECLARED else ())

    def read_declarations(self, reader: InternalTopicReader, *, complete: bool) -> None:
        """Read what the flow declared, and committed. `complete`: wait for transactions that are open."""
        for record in reader.read(self.topic, only=self.declaring, complete=complete):
            if told := concerned(record, self._pairs, self._drafts, self._where):
                draft, receipt = told
                draft.declare(receipt)


def _state(flow: Flow, reader: InternalTopicReader) -> FlowState:
    topic = state_topic(flow.target.alias)
    return fold_state(((record.key, record.value) for record in reader.read(topic, complete=False)), place_of(flow.source, topic))


def _lowest(facts: PartitionFacts) -> int:
    """The lowest offset that a plan for this partition could copy."""
    head = facts.head
    known = head is not None and head.topic_ids == facts.topic_ids
    first = head.position if head is not None and known else min(facts.start, facts.log_start)
    first = first if facts.truncation is None else min(first, facts.truncation.start)
    return first if facts.since is None else min(first, max(facts.since, facts.log_start))


def concerned(
    record: InternalRecord, pairs: Mapping[str, PartitionPair], drafts: Mapping[TopicPartition, GuardDraft], where: str
) -> tuple[GuardDraft, Receipt] | None:
    """A receipt and the draft that needs it, if any. Most receipts of a long ledger matter to none, and decoding all of them costs time."""
    if record.value is None:
        return None
    seen = glance(record.key, record.value)
    if seen is not None:
        draft = drafts.get(TopicPartition(seen.remote_topic, seen.partition))
        if draft is None or seen.downstream_end <= draft.low:
            return None
    receipt = decode_receipt(record.key, record.value, where)
    draft, pair = drafts.get(TopicPartition(receipt.remote_topic, receipt.partition)), pairs.get(receipt.remote_topic)
    if draft is None or pair is None or max(receipt.downstream_end, receipt.found) <= draft.low:
        return None
    return (draft, receipt) if tells_of(receipt, pair) else None


def _ledger_id(flow: Flow, reader: InternalTopicReader, source_topics: Mapping[str, TopicDescription], heads: Iterable[Head]) -> str:
    """The id of the other flow's ledger. If it was created after the topics were listed, the id that its heads name."""
    name = ledger_topic(flow.target.alias)
    if name in source_topics:
        return source_topics[name].topic_id or ""
    named = {head.ledger_topic_id for head in heads}
    return named.pop() if len(named) == 1 and reader.partitions(name) else "none"


def _refuse_two_ways(flow: Flow, other: FlowState, topic: str) -> None:
    """ConfigError if the other flow, which writes `topic` too, has another name here: it would not find this flow's ledger.

    Also if one of the flows copies at least once: records of a killed run have no receipt, and Ferry would take them for local ones.
    """
    if other.flow is not None and other.flow.flow != flow.reverse_name:
        raise ConfigError(
            f"flow {flow.name}: topic {topic} is copied back by flow {other.flow.flow}, which should be called {flow.reverse_name}: "
            "use one alias for each cluster everywhere, or records would go round"
        )
    wrong = [] if flow.exactly_once else [flow.name]
    wrong += [flow.reverse_name] if other.flow is not None and not other.flow.exactly_once else []
    if wrong:
        raise ConfigError(
            f"flow {flow.name}: {flow.reverse_name} writes to topic {topic} too, and names stay as they are: both flows must copy "
            f"exactly once, or records would go round; set transaction.producer=true for {' and '.join(wrong)} (and run it), or leave the "
            "topic out of one"
        )


def _refuse_other_alias(
    flow: Flow, reader: InternalTopicReader, pairs: Mapping[str, PartitionPair], source_topics: Mapping[str, TopicDescription]
) -> None:
    """ConfigError if a flow from the target writes here under another alias: Ferry would not find its ledger."""
    own = state_topic(flow.target.alias)
    names = {name: found.partitions for name, found in source_topics.items() if is_state_topic(name) and name != own}
    heads: dict[str, list[Head]] = {}
    for name, record in reader.glance(names):
        if record.value is not None and record.key.startswith(HEAD_KEY):
            entry = decode_state(record.key, record.value, place_of(flow.source, name))
            if isinstance(entry, Head):
                heads.setdefault(name, []).append(entry)
    for name, entries in heads.items():
        # On clusters without topic ids, ids do not show whether it is the same topic.
        topics = [topic for topic in both_ways(entries, pairs) if pairs[topic].remote_topic_id != NO_TOPIC_ID]
        if topics:
            alias = name.removeprefix(STATE_PREFIX).removesuffix(STATE_SUFFIX)
            raise ConfigError(
                f"flow {flow.name}: the cluster called {flow.target.alias} here is called {alias} by the flow that copies topic "
                f"{sorted(topics)[0]} from it to {flow.source.alias}: use one alias for it everywhere, or records would go round"
            )
