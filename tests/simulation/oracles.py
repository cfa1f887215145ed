"""What must hold when everything has come to rest, read from the logs themselves and not by Ferry's readers.

Every committed record of the source is on the target once, in order, and nothing else; receipts, heads and positions say exactly that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from tests.simulation.batches import Record, records
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.log import Log
from tests.simulation.partition import NO_LEADER, Partition
from tests.simulation.records import what_of
from tests.simulation.rewritten import rewritten
from tests.simulation.translating import Sides, mistranslated

from ferry.config import Flow
from ferry.ledger.receipts import Receipt, ReceiptKind, decode_receipt
from ferry.ledger.state import HEAD_KEY, Head, decode_state
from ferry.translation.offset_map import LogBounds


@dataclass(frozen=True)
class Copy:
    """A source topic and its remote topic. `mark`: how the values begin that are written to the source. If both topics have one name, those
    that come from the target begin otherwise. `gone`: by source partition, committed records that it has lost."""

    flow: Flow
    source: SimulatedCluster
    target: SimulatedCluster
    topic: str
    mark: bytes = b""
    gone: Mapping[tuple[str, int], list[Record]] = field(default_factory=dict)

    @property
    def remote(self) -> str:
        return f"{self.flow.source.alias}.{self.topic}" if self.flow.policy.renames else self.topic

    def own(self, part: Partition, *, all_decided: bool = False) -> list[Record]:
        """As `committed`: of the records that were written to the source."""
        return [record for record in committed(part, all_decided=all_decided) if (record.value or b"").startswith(self.mark)]

    def partitions(self) -> Iterator[tuple[Partition, Partition]]:
        return zip(self.source.topic(self.topic).partitions, self.target.topic(self.remote).partitions, strict=True)


def log_of(part: Partition) -> Log:
    """The leader's log; without a leader the longest."""
    return part.log if part.led.leader != NO_LEADER else max(part.logs.values(), key=lambda log: log.end)


def committed(part: Partition, *, all_decided: bool = False) -> list[Record]:
    """What a committed reader sees. `all_decided`: and what it will see when the transactions have ended that are open now."""
    log = log_of(part)
    end = log.high_watermark if all_decided else log.stable_end
    is_open = {producer: first for first, producer in log.producers.ongoing.items()} if all_decided else {}
    aborted = {(one.producer_id, one.first): one.last for one in log.producers.aborted}
    ends: dict[int, list[tuple[int, int]]] = {}
    for (producer, first), last in aborted.items():
        ends.setdefault(producer, []).append((first, last))
    found: list[Record] = []
    for batch in log.batches:
        if batch.is_control or batch.next_offset > end or batch.base_offset >= is_open.get(batch.producer_id, end):
            continue
        if batch.is_transactional and any(first <= batch.base_offset < last for first, last in ends.get(batch.producer_id, ())):
            continue
        found += records(batch)
    return found


def newest(cluster: SimulatedCluster, topic: str) -> dict[bytes, bytes]:
    """The newest committed value of each key."""
    found: dict[bytes, bytes | None] = {}
    if topic in cluster.state.topics:
        for part in cluster.topic(topic).partitions:
            found |= {record.key or b"": record.value for record in committed(part)}
    return {key: value for key, value in found.items() if value is not None}


def receipts(copy: Copy) -> list[Receipt]:
    """All receipts, in the order of source offsets."""
    found = [decode_receipt(key, value) for key, value in newest(copy.target, copy.flow.ledger_topic).items()]
    return sorted(found, key=lambda receipt: (receipt.topic, receipt.partition, receipt.upstream_start))


def wanted(copy: Copy, source: Partition, known: Iterable[Receipt]) -> list[Record]:
    """The committed records of a source partition, without those that it deleted before the flow began, or that receipts call lost."""
    own, start = [one for one in known if (one.topic, one.partition) == source.key], log_of(source).start
    lost = [(one.upstream_start, min(one.upstream_end, start)) for one in own if one.kind is ReceiptKind.LOSS]
    lost.append((0, min(start, min((one.upstream_start for one in own), default=start))))
    return [record for record in copy.own(source) if not any(first <= record.offset < end for first, end in lost)]


def violations(copy: Copy) -> list[str]:
    """Everything that does not hold, in words."""
    if copy.remote not in copy.target.state.topics:
        return [f"there is no topic {copy.remote}"]
    known = receipts(copy)
    found = []
    for source, target in copy.partitions():
        own = [one for one in known if (one.topic, one.partition) == source.key and one.kind is not ReceiptKind.SEED]
        if source.key in copy.gone:
            all_of_it = [one for one in known if (one.topic, one.partition) == source.key]
            name = f"{source.topic}-{source.index}"
            found += rewritten(name, copy.own(source), copy.gone[source.key], copy.own(target), all_of_it)
            found += _positions(copy, source, [one for one in own if one.series in {head.series for head in _heads(copy, source)}])
            continue
        due = wanted(copy, source, known)
        found += _copied(copy, due, target) if copy.flow.exactly_once else []
        found += _explained(copy, due, source, target, own)
        found += _returned(source) if copy.mark else []
        found += _positions(copy, source, own)
        found += [] if copy.mark else translated(copy, source, target, known, due)
    return found + _open(copy.target)


def sides_of(
    copy: Copy, source: Partition, target: Partition, known: list[Receipt], due: list[Record]
) -> tuple[Sides, list[Receipt], LogBounds]:
    """What translations are compared with, and what they are made from. `due`: the records that must be on the target."""
    own, starts = [one for one in known if (one.topic, one.partition) == source.key], (log_of(source).start, log_of(target).start)
    bounds = LogBounds(*starts, log_of(target).stable_end, exactly_once=copy.flow.exactly_once)
    return Sides(due, committed(target), own, bounds), own, bounds


def translated(copy: Copy, source: Partition, target: Partition, known: list[Receipt], due: list[Record]) -> list[str]:
    """Whether offsets are translated right. Nothing is told while a transaction is open there."""
    if log_of(target).stable_end < log_of(target).high_watermark:
        return []
    return [f"{source.topic}-{source.index}: {problem}" for problem in mistranslated(*sides_of(copy, source, target, known, due))]


def _copied(copy: Copy, source: list[Record], target: Partition) -> list[str]:
    """Whether the records are the same."""
    here, there = what_of(source), what_of(copy.own(target))
    if here == there:
        return []
    place = next(place for place, (one, other) in enumerate(zip_longest(here, there)) if one != other)
    names = [one.value for one in there]
    doubled = sorted({str(name) for name in names if names.count(name) > 1})
    lost = [str(one.value) for one in here if one not in there]
    invented = [str(one.value) for one in there if one not in here]
    told = [f"{word}: {', '.join(some)}" for word, some in (("lost", lost), ("doubled", doubled), ("not on the source", invented)) if some]
    told = told or ["in another order"]
    return [f"{copy.remote}-{target.index} differs from record {place} on: {'; '.join(told)}"]


def _returned(source: Partition) -> list[str]:
    """Records that are on their own cluster more than once: they have come back. Every value is written once."""
    values = [record.value for record in committed(source)]
    back = sorted({str(value) for value in values if values.count(value) > 1})
    return [f"{source.topic}-{source.index} has records that came back: {', '.join(back)}"] if back else []


def _explained(copy: Copy, due: list[Record], source: Partition, target: Partition, own: list[Receipt]) -> list[str]:
    """Whether receipts settle every offset once, and their runs name the right records."""
    name, reached, found = f"receipts of {source.topic}-{source.index}", own[0].upstream_start if own else 0, []
    here, there = ({one.offset: what for one, what in zip(all_, what_of(all_), strict=True)} for all_ in (due, copy.own(target)))
    explained: list[int] = []
    named: list[int] = []
    for receipt in own:
        # Without transactions, a run that follows may end when a receipt has grown, and its head has not.
        again = [place for place, offset in enumerate(named) if offset >= receipt.upstream_start]
        if receipt.upstream_start < reached and not copy.flow.exactly_once:
            first = {offset for begin, end in receipt.repeated for offset in range(begin, end)}
            found += [f"{name} do not say that {explained[place]} is a first copy" for place in again if explained[place] not in first]
            del named[len(named) - len(again) :], explained[len(explained) - len(again) :]
        elif receipt.upstream_start != reached:
            found.append(f"{name}: after {reached} comes {receipt.upstream_start}")
        reached = receipt.upstream_end
        for upstream, downstream, count in receipt.runs:
            for step in range(count):
                explained.append(downstream + step)
                named.append(upstream + step)
                if here.get(upstream + step) is None or here.get(upstream + step) != there.get(downstream + step):
                    found.append(f"{name}: source offset {upstream + step} is not {downstream + step} on the target")
    if own and [offset for offset in here if own[0].upstream_start <= offset < reached] != named:
        found.append(f"{name} name source offsets {named}, not {list(here)}")
    repeated = {offset for receipt in own for first, end in receipt.repeated for offset in range(first, end)}
    last = max(explained, default=-1)
    behind = set() if copy.flow.exactly_once else {offset for offset in there if offset > last} | repeated
    if sorted(explained) != sorted(there.keys() - (behind - set(explained))):
        found.append(f"{name} explain {explained} of {copy.remote}-{target.index}, which holds {list(there)}")
    return found


def _heads(copy: Copy, source: Partition) -> list[Head]:
    state = newest(copy.target, copy.flow.state_topic)
    entries = (decode_state(key, value) for key, value in state.items() if key.startswith(HEAD_KEY))
    return [entry for entry in entries if isinstance(entry, Head) and (entry.topic, entry.partition) == source.key]


def _positions(copy: Copy, source: Partition, own: list[Receipt]) -> list[str]:
    """Whether head, position and receipts agree."""
    heads = [head.position for head in _heads(copy, source)]
    group = copy.target.groups.groups.get(copy.flow.position_group)
    stored = group.offsets.get((copy.remote, source.index)) if group is not None else None
    ends = [receipt.upstream_end for receipt in own][-1:] or heads
    positions = [] if stored is None else [stored.offset]
    agree = positions == heads if copy.flow.exactly_once else not positions or positions <= heads
    if agree and (ends == heads or not own):
        return []
    return [f"{source.topic}-{source.index}: the receipts end at {ends}, the head says {heads}, the group {positions}"]


def _open(cluster: SimulatedCluster) -> list[str]:
    """Transactions that nobody has ended."""
    parts = [part for topic in cluster.state.topics.values() for part in topic.partitions]
    return [
        f"{part.topic}-{part.index} is stable only up to {log_of(part).stable_end} of {log_of(part).high_watermark}"
        for part in parts
        if log_of(part).stable_end < log_of(part).high_watermark
    ]
