"""Small histories of one partition, and what is true of them: written down record by record, without the code under test."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.wire.runs import OffsetRun

BLANK = Receipt(ReceiptKind.SEED, "t", 0, "source-id", "A.t", "remote-id", 0, 0)


@dataclass
class World:
    """A source log whose records are at `records`, and a target log.

    `copies`: (upstream, downstream) of every copied record in the order of writing. `strangers`: the same of records that nobody explains
    (upstream -1: it never was at the source). `end`: the target's log end. `settled`: upstream offsets that the ledger covers. `replaces`:
    the ledger was written by a Ferry whose receipts, behind a position that was taken back, replaced those of the first copies.
    """

    records: frozenset[int]
    position: int = 0
    end: int = 0
    source_start: int = 0
    target_start: int = 0
    copies: list[tuple[int, int]] = field(default_factory=list)
    strangers: list[tuple[int, int]] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    receipts: list[Receipt] = field(default_factory=list)
    seeds: int = 0
    replaces: bool = False

    def add(self, kind: ReceiptKind, start: int, end: int, **fields: object) -> None:
        one_series = self.replaces or self.seeds < 2 or kind in {ReceiptKind.SEED, ReceiptKind.FOREIGN}
        where = {"kind": kind, "upstream_start": start, "series": "" if one_series else f"run-{self.seeds}"}
        self.receipts = [receipt for receipt in self.receipts if any(getattr(receipt, name) != value for name, value in where.items())]
        self.receipts.append(Receipt(**{**BLANK.__dict__, **where, "upstream_end": end, **fields}))
        if kind is not ReceiptKind.SEED:
            self.settled |= set(range(start, end))

    def seed(self, position: int) -> None:
        self.position = position
        self.seeds += 1
        self.add(ReceiptKind.SEED, position, position, reason="operator: seeds.csv" if self.seeds > 1 else "start policy earliest")

    def put(self, kind: ReceiptKind, start: int, end: int, aborted: int) -> None:
        """One transaction over [start, end), after an aborted one of so many records."""
        if aborted:
            self.end += aborted + 1
        runs: list[OffsetRun] = []
        first = self.end
        self.lost -= set(range(start, end))
        for upstream in range(start, end):
            if upstream in self.records:
                if runs and runs[-1][0] + runs[-1][2] == upstream:
                    runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + 1)
                else:
                    runs.append((upstream, self.end, 1))
                self.copies.append((upstream, self.end))
                self.end += 1
        wrote = self.end - first
        self.add(kind, start, end, runs=tuple(runs), counters=Counters(wrote, transactions=1), downstream_end=self.end if wrote else -1)
        self.end += bool(wrote)

    def gaps(self) -> list[tuple[int, int]]:
        """Unsettled stretches below the position."""
        missing = [offset for offset in range(self.position) if offset not in self.settled]
        stretches: list[tuple[int, int]] = []
        for offset in missing:
            if stretches and stretches[-1][1] == offset:
                stretches[-1] = (stretches[-1][0], offset + 1)
            else:
                stretches.append((offset, offset + 1))
        return stretches

    def let_a_stranger_write(self, count: int) -> None:
        """Of what was not copied, or what never was at the source; then it is declared."""
        for upstream in [offset for low, high in self.gaps() for offset in range(low, high)][:count] or [-1]:
            self.strangers.append((upstream, self.end))
            self.end += 1
        for low, high in self.gaps() or [(self.position, self.position)]:
            self.add(ReceiptKind.FOREIGN, low, high, downstream_end=self.end)

    def act(self, step: tuple[str, int, int]) -> None:
        what, size, extra = step
        last = max(self.records, default=0) + 2
        end = min(self.position + size, last)
        match what:
            case "copy" if end > self.position:
                self.put(ReceiptKind.COPIED, self.position, end, extra)
                self.position = end
            case "lose" | "skip" if end > self.position:
                self.add(ReceiptKind.LOSS if what == "lose" else ReceiptKind.SKIPPED, self.position, end)
                self.lost |= set(range(self.position, end))
                self.position = end
            case "jump":
                self.seed(end)
            case "rewind":
                self.seed(max(0, self.position - size))
            case "backfill" if self.gaps():
                low, high = self.gaps()[extra % len(self.gaps())]
                self.put(ReceiptKind.BACKFILLED, low, min(high, low + size), extra)
            case "stranger":
                self.let_a_stranger_write(size)
            case "expire":
                self.target_start = min(self.end, self.target_start + size)
            case "age":
                self.source_start = min(last, self.source_start + extra)

    def read_from(self, offset: int) -> list[int]:
        """Upstream offsets of what a reader of the target meets; -1 for a record that nobody explains."""
        found = [(place, upstream) for upstream, place in self.copies] + [(place, -1) for _, place in self.strangers]
        return [upstream for place, upstream in sorted(found) if place >= max(offset, self.target_start)]

    def expected_from(self, offset: int) -> list[int]:
        """What follows upstream `offset` at the source, of what was copied in front of the position and not lost since."""
        return sorted({upstream for upstream, _ in self.copies if offset <= upstream < self.position} - self.lost)


def worlds(*steps: str, longest: int = 12) -> st.SearchStrategy[World]:
    """Histories of `copy` and the other steps named."""
    step = st.tuples(st.sampled_from(("copy", "copy", *steps)), st.integers(1, 9), st.integers(0, 3))
    records = st.frozensets(st.integers(0, 40), min_size=5)
    return st.builds(_played, records, st.integers(0, 12), st.lists(step, max_size=longest), st.booleans())


def _played(records: frozenset[int], start: int, steps: list[tuple[str, int, int]], replaces: bool) -> World:
    world = World(records, replaces=replaces)
    world.seed(start)
    for step in steps:
        world.act(step)
    return world
