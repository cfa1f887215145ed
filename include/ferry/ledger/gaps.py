"""Gaps of a ledger: source offsets that a seed passed over, and that no receipt settles (pure).

A flow copies a partition without a gap from its first position on. Only a seed that moves the position leaves one. Offsets before the first
position, which the start policy gives, are no gap: the config says that the flow begins there. So it is if a topic was created again.

A reader that begins at the start of a ledger knows all of its gaps. A reader that begins at an index knows the gaps of the index, and
removes those that receipts have settled since. Where the position was before a newer seed, only the beginning of the ledger shows.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ferry.clusters.net.partitions import TopicPartition, grouped
from ferry.ledger.receipts import BY_START_POLICY, CREATED_AGAIN, SETTLING, Glance, Receipt, ReceiptKind
from ferry.wire.ranges import Range, Ranges, outside, union


class CopiedPair(NamedTuple):
    """A source partition as copied to one remote topic; ids as of TopicIds."""

    topic: str
    partition: int
    source_topic_id: str
    remote_topic_id: str

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


Gaps = Mapping[CopiedPair, Ranges]


class GapFold:
    """Collects gaps from a ledger's receipts, in any order. `known`: those of an index, by partition of the ledger."""

    def __init__(self, known: Mapping[int, Iterable[tuple[CopiedPair, Ranges]]]) -> None:
        self._indexed = frozenset(known)
        self._known = {pair: ranges for found in known.values() for pair, ranges in found}
        self._share = {pair: share for share, found in known.items() for pair, _ in found}
        self._settled: dict[CopiedPair, list[Range]] = {}
        self._first: dict[CopiedPair, int] = {}
        self.unsure = False

    def add(self, seen: Glance | Receipt, share: int) -> None:
        """Add one receipt of partition `share` of the ledger. An indexed partition takes receipts behind the index, and those it lists."""
        pair = CopiedPair(seen.topic, seen.partition, seen.source_topic_id, seen.remote_topic_id)
        if seen.kind == ReceiptKind.SEED:
            self._add_seed(pair, seen, share)
        elif seen.kind in SETTLING and (share not in self._indexed or pair in self._known):
            settled = self._settled.setdefault(pair, [])
            if settled and settled[-1][0] <= seen.upstream_start <= settled[-1][1]:  # the next receipt, or the same one, grown
                settled[-1] = settled[-1][0], max(settled[-1][1], seen.upstream_end)
            else:
                settled.append((seen.upstream_start, seen.upstream_end))

    def _add_seed(self, pair: CopiedPair, seen: Glance | Receipt, share: int) -> None:
        if seen.reason.startswith(BY_START_POLICY) or seen.reason.endswith(CREATED_AGAIN):
            self._first[pair] = max(self._first.get(pair, 0), seen.upstream_start)
        elif share in self._indexed:
            self.unsure = True
        else:
            self._share[pair] = share
            self._settled.setdefault(pair, []).append((seen.upstream_start, seen.upstream_start))

    @property
    def gaps(self) -> dict[CopiedPair, Ranges]:
        """Offsets that no receipt settles, by partition; partitions without a gap are left out."""
        found = {pair: self._unsettled(pair) for pair in sorted(self._share)}
        return {pair: ranges for pair, ranges in found.items() if ranges}

    def by_share(self) -> dict[int, list[tuple[CopiedPair, Ranges]]]:
        """The gaps by partition of the ledger."""
        return grouped((self._share[pair], (pair, ranges)) for pair, ranges in self.gaps.items())

    def _unsettled(self, pair: CopiedPair) -> Ranges:
        settled = self._settled.get(pair, ())
        wanted = self._known.get(pair)
        if wanted is None:
            wanted = ((self._first.get(pair, 0), max(end for _, end in settled)),)
        return tuple(left for start, end in wanted for left in outside(union(settled), start, end))
