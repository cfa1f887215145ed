"""Records without a counterpart, which were set aside while a range was compared, and their explanation at the end (pure).

Two equal records are one record at another place (reordered). Two other records that were set aside together are versions of one record
(altered); the most similar ones are paired first. All others are missing or extra. Ferry keeps only digests of a limited number of records,
and counts the rest.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ferry.clusters.net.partitions import grouped
from ferry.verify.comparison import DifferenceKind
from ferry.verify.contents import FIELDS, Content, digest, field_digests
from ferry.wire import varint

# How many records of one range are kept: a remote topic with completely different records must not fill the memory.
KEPT = 2_000
# If at most this many records were set aside together, the most similar ones are paired. More are paired in order.
CAREFUL = 50
# Most records have no headers, so equal headers alone make no pair.
HEADERS_ALIKE = 1
NO_KEY = field_digests((0, varint.encode(-1)))[0]


@dataclass(frozen=True)
class Lone:
    """A record without a counterpart. `named`: its downstream offset by the ledger (-1: none)."""

    offset: int
    named: int
    digest: bytes
    fields: tuple[bytes, ...]


# Records that were set aside together: of the source, of the target.
_Part = tuple[list[Lone], list[Lone]]


@dataclass(frozen=True)
class Mismatch:
    """A difference, by offsets (-1: none). `named`: the downstream offset at which the record should be."""

    kind: DifferenceKind
    upstream: int
    downstream: int
    named: int
    fields: tuple[str, ...] = ()


@dataclass
class Unmatched:
    """Collects lone records of both sides, in parts that were set aside together. `content` False: only presence was compared."""

    content: bool = True
    _parts: list[_Part] = field(default_factory=list)
    _kept: int = 0
    _beyond: Counter[DifferenceKind] = field(default_factory=Counter)

    @property
    def any(self) -> bool:
        return bool(self._parts or self._beyond)

    def add(self, source: Iterable[tuple[int, int, Content]], target: Iterable[tuple[int, int, Content]]) -> None:
        """One part: (upstream offset, named downstream offset, content) of the source, (downstream offset, -1, content) of the target."""
        here, there = list(source), list(target)
        if self._kept + len(here) + len(there) <= KEPT:
            self._kept += len(here) + len(there)
            self._parts.append(([_lone(*record) for record in here], [_lone(*record) for record in there]))
            return
        pairs = min(len(here), len(there))
        self._beyond[DifferenceKind.ALTERED] += pairs
        self._beyond[DifferenceKind.MISSING] += len(here) - pairs
        self._beyond[DifferenceKind.EXTRA] += len(there) - pairs

    def finish(self) -> tuple[list[Mismatch], Counter[DifferenceKind]]:
        """The mismatches in order of target offsets, and how many more there are of each kind."""
        source, target = ([lone for part in self._parts for lone in part[side]] for side in (0, 1))
        if self.content:
            places = grouped((lone.digest, lone) for lone in reversed(target))
            # Each record of the source, with the first equal one of the target that no other record took.
            moved = [(lone, places[lone.digest].pop()) for lone in source if places.get(lone.digest)]
            found = [Mismatch(DifferenceKind.REORDERED, one.offset, other.offset, one.named) for one, other in moved]
            explained = {id(lone) for pair in moved for lone in pair}
            for part in self._parts:
                here, there = ([lone for lone in side if id(lone) not in explained] for side in part)
                found += _told_apart(here, there)
        else:
            found = [*map(_missing, source), *map(_extra, target)]
        return sorted(found, key=lambda one: (one.downstream if one.downstream >= 0 else one.named, one.upstream)), +self._beyond


def _lone(offset: int, named: int, content: Content) -> Lone:
    return Lone(offset, named, digest(content), field_digests(content))


def _told_apart(here: list[Lone], there: list[Lone]) -> list[Mismatch]:
    """Pairs are altered records; the others are missing or extra."""
    pairs = _most_alike(here, there) if max(len(here), len(there)) <= CAREFUL else list(zip(here, there, strict=False))
    paired = {id(lone) for pair in pairs for lone in pair}
    return [
        *(_altered(one, other) for one, other in pairs),
        *(_missing(lone) for lone in here if id(lone) not in paired),
        *(_extra(lone) for lone in there if id(lone) not in paired),
    ]


def _most_alike(source: list[Lone], target: list[Lone]) -> list[tuple[Lone, Lone]]:
    """Pairs that keep the order, the most similar first. Records with nothing in common are no pair."""
    candidates = sorted(
        (-likeness, abs(first - second), first, second)
        for first, one in enumerate(source)
        for second, other in enumerate(target)
        if (likeness := _likeness(one, other)) > HEADERS_ALIKE
    )
    pairs = []
    while candidates:
        _, _, first, second = candidates[0]
        pairs.append((source[first], target[second]))
        candidates = [entry for entry in candidates if (entry[2] - first) * (entry[3] - second) > 0]
    return pairs


def _likeness(one: Lone, other: Lone) -> int:
    key, value, headers, timestamp = (left == right for left, right in zip(one.fields, other.fields, strict=True))
    told = 3 * (value + timestamp) + 2 * (key and one.fields[0] != NO_KEY) + 2 * (one.named == other.offset)
    return told + HEADERS_ALIKE * headers


def _altered(one: Lone, other: Lone) -> Mismatch:
    changed = tuple(name for name, left, right in zip(FIELDS, one.fields, other.fields, strict=True) if left != right)
    return Mismatch(DifferenceKind.ALTERED, one.offset, other.offset, one.named, changed)


def _missing(lone: Lone) -> Mismatch:
    return Mismatch(DifferenceKind.MISSING, lone.offset, -1, lone.named)


def _extra(lone: Lone) -> Mismatch:
    return Mismatch(DifferenceKind.EXTRA, -1, lone.offset, -1)
