"""Reads what the flow in the other direction wrote into this flow's source, and adds it to the facts about the partitions.

The order makes it safe. The ends of the partitions are known before; then the other flow's ledger is read to its high watermark. Receipts
of records below such an end were appended before their transaction ended, so they are all there. Open transactions need no wait: whether
they are committed or not, the other flow wrote the offsets that their receipts name. Receipts that an operator declared are different:
they count only when they are committed.

At last Ferry asks the source where the log of each leader epoch that receipts name ends today.

It does not matter whether the config file has the other flow, only whether its ledger is on the source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ferry.clusters.describe import TopicDescription
from ferry.clusters.internal_reader import InternalRecord, InternalTopicReader
from ferry.clusters.leader_epochs import epoch_ends
from ferry.clusters.partitions import TopicPartition
from ferry.config import Flow
from ferry.copying.loop_guard import DECLARED, GuardDraft, PartitionGuard, TopicPair, both_ways, unexplained_partitions
from ferry.copying.plan import PartitionFacts
from ferry.errors import ConfigError, UnreadableRecord
from ferry.ledger.formats import place_of, require_version
from ferry.ledger.receipt_glance import glance
from ferry.ledger.receipts import decode_receipt
from ferry.ledger.state import HEAD_KEY, FlowState, Head, decode_state, fold_state
from ferry.policy.naming import STATE_PREFIX, STATE_SUFFIX, ledger_topic, state_topic
from ferry.wire.documents import number, read_document
from ferry.wire.ranges import within


def guarded(
    flow: Flow, facts: Iterable[PartitionFacts], source_topics: Mapping[str, TopicDescription], *, settled: bool
) -> tuple[PartitionFacts, ...]:
    """The facts, with the guard. `settled`: wait for declarations whose transaction is open.

    ConfigError if both flows must not run together. If no remote topic has its source topic's name, no guard is needed.
    """
    found = tuple(facts)
    if not found or (flow.policy.renames and all(entry.topic != entry.remote_topic for entry in found)):
        return found
    pairs = {entry.topic: _pair(entry) for entry in found}
    drafts = {(entry.topic, entry.partition): GuardDraft(_lowest(entry)) for entry in found}
    with InternalTopicReader(flow.source, committed=False) as reader:
        _refuse_other_alias(flow, reader, pairs, source_topics)
        other = _state(flow, reader)
        two_way = both_ways(other.heads.values(), pairs)
        _refuse_at_least_once(flow, other, two_way)
        shares = _read_ledger(flow, reader, pairs, drafts)
    broken: frozenset[tuple[str, int]] = frozenset()
    if other.heads or shares:
        with InternalTopicReader(flow.source) as reader:
            heads = _state(flow, reader).heads.values()
            broken = unexplained_partitions(heads, pairs, _ledger_id(flow, reader, source_topics, heads))
            for share in sorted(shares):
                _read_declarations(flow, reader, pairs, drafts, share, settled=settled)
    ends = epoch_ends(flow.source, {TopicPartition(*key): draft.epochs for key, draft in drafts.items() if draft.epochs})
    return tuple(_with_guard(entry, drafts, ends, two_way, broken) for entry in found)


def _state(flow: Flow, reader: InternalTopicReader) -> FlowState:
    topic = state_topic(flow.target.alias)
    return fold_state(((record.key, record.value) for record in reader.read(topic, complete=False)), place_of(flow.source, topic))


def _with_guard(
    facts: PartitionFacts,
    drafts: Mapping[tuple[str, int], GuardDraft],
    ends: Mapping[TopicPartition, Mapping[int, int]],
    two_way: frozenset[str],
    broken: frozenset[tuple[str, int]],
) -> PartitionFacts:
    key = TopicPartition(facts.topic, facts.partition)
    excluded, unclear_below = drafts[key].finish(ends.get(key))
    unasked = bool(drafts[key].epochs) and key not in ends
    guard = PartitionGuard(within(excluded, _lowest(facts), facts.end), unclear_below, key in broken, facts.topic in two_way, unasked)
    return replace(facts, guard=guard)


def _pair(facts: PartitionFacts) -> TopicPair:
    remote_id = str(facts.remote_topic_id) if facts.remote_topic_id is not None else ""
    return TopicPair(facts.topic, str(facts.topic_id), facts.remote_topic, remote_id)


def _lowest(facts: PartitionFacts) -> int:
    """The lowest offset that a plan for this partition could copy."""
    head = facts.head
    known = head is not None and head.topic_ids == facts.topic_ids
    first = head.position if head is not None and known else min(facts.start, facts.log_start)
    first = first if facts.truncation is None else min(first, facts.truncation.start)
    return first if facts.since is None else min(first, max(facts.since, facts.log_start))


def _read_ledger(
    flow: Flow, reader: InternalTopicReader, pairs: Mapping[str, TopicPair], drafts: Mapping[tuple[str, int], GuardDraft]
) -> set[int]:
    """Add every receipt of written records. Returns the partitions of the ledger that hold declarations."""
    shares = set()
    topic = ledger_topic(flow.target.alias)
    where = place_of(flow.source, topic)
    for record in reader.read(topic):
        draft = _concerned(record, pairs, drafts, where)
        if draft is not None:
            receipt = decode_receipt(record.key, record.value or b"", where)
            draft.add(receipt)
            if receipt.kind in DECLARED:
                shares.add(record.partition)
    return shares


def _read_declarations(
    flow: Flow,
    reader: InternalTopicReader,
    pairs: Mapping[str, TopicPair],
    drafts: Mapping[tuple[str, int], GuardDraft],
    share: int,
    *,
    settled: bool,
) -> None:
    topic = ledger_topic(flow.target.alias)
    where = place_of(flow.source, topic)
    for record in reader.read(topic, only=share, complete=settled):
        draft = _concerned(record, pairs, drafts, where)
        if draft is not None:
            draft.declare(decode_receipt(record.key, record.value or b"", where))


def _concerned(
    record: InternalRecord, pairs: Mapping[str, TopicPair], drafts: Mapping[tuple[str, int], GuardDraft], where: str
) -> GuardDraft | None:
    """The draft that needs this receipt, if any. Most receipts of a long ledger matter to none, and decoding all of them costs time."""
    if record.value is None or not _may_matter(record.key, record.value, drafts):
        return None
    try:
        name, what = read_document(record.key), read_document(record.value)
        require_version(what, where)
        remote, partition, end = what["remote_topic"], name["partition"], max(number(what["downstream_end"]), number(what.get("found", -1)))
        today = remote in pairs and pairs[remote].is_told_of(what["remote_id"], name["topic"], name["id"])
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableRecord(f"{where}: record {record.key!r} is not readable: {problem}") from problem
    draft = drafts.get((remote, partition)) if today else None
    return draft if draft is not None and end > draft.low else None


def _may_matter(key: bytes, value: bytes, drafts: Mapping[tuple[str, int], GuardDraft]) -> bool:
    seen = glance(key, value)
    draft = None if seen is None else drafts.get((seen.remote_topic, seen.partition))
    return seen is None or (draft is not None and seen.downstream_end > draft.low)


def _ledger_id(flow: Flow, reader: InternalTopicReader, source_topics: Mapping[str, TopicDescription], heads: Iterable[Head]) -> str:
    """The id of the other flow's ledger. If it was created after the topics were listed, the id that its heads name."""
    name = ledger_topic(flow.target.alias)
    if name in source_topics:
        return source_topics[name].topic_id or ""
    named = {head.ledger_topic_id for head in heads}
    return named.pop() if len(named) == 1 and reader.partitions(name) else "none"


def _refuse_at_least_once(flow: Flow, other: FlowState, two_way: Iterable[str]) -> None:
    """ConfigError: records that a killed at-least-once run left behind have no receipt, and would be taken for local ones."""
    topics = sorted(two_way)
    if not topics:
        return
    back = f"{flow.target.alias}->{flow.source.alias}"
    wrong = [] if flow.exactly_once else [flow.name]
    wrong += [back] if other.flow is not None and not other.flow.exactly_once else []
    if wrong:
        raise ConfigError(
            f"flow {flow.name}: {back} writes to topic {topics[0]} too, and names stay as they are: both flows must copy exactly once, or "
            f"records would go round; set transaction.producer=true for {' and '.join(wrong)} (and run it), or leave the topic out of one"
        )


def _refuse_other_alias(
    flow: Flow, reader: InternalTopicReader, pairs: Mapping[str, TopicPair], source_topics: Mapping[str, TopicDescription]
) -> None:
    """ConfigError if a flow from the target writes here under another alias: Ferry would not find its ledger."""
    names = {
        name: found.partitions
        for name, found in source_topics.items()
        if name.startswith(STATE_PREFIX) and name.endswith(STATE_SUFFIX) and name != state_topic(flow.target.alias)
    }
    heads: dict[str, list[Head]] = {}
    for name, record in reader.glance(names):
        if record.value is not None and record.key.startswith(HEAD_KEY):
            entry = decode_state(record.key, record.value, place_of(flow.source, name))
            if isinstance(entry, Head):
                heads.setdefault(name, []).append(entry)
    for name, entries in heads.items():
        # On clusters without topic ids, ids cannot tell whether it is the same topic.
        topics = [topic for topic in both_ways(entries, pairs) if int(pairs[topic].remote_topic_id.replace("-", ""), 16)]
        if topics:
            alias = name.removeprefix(STATE_PREFIX).removesuffix(STATE_SUFFIX)
            raise ConfigError(
                f"flow {flow.name}: the cluster called {flow.target.alias} here is called {alias} by the flow that copies topic "
                f"{sorted(topics)[0]} from it to {flow.source.alias}: use one alias for it everywhere, or records would go round"
            )
