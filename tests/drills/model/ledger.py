"""A ledger that is written, merged and read at the same time: one lane, two compactions, one reader, and markers that come one by one.

Merging and coverage are Ferry's own. The log of an internal topic is a tuple of entries; those of a transaction count when
it is committed, and a reader sees them when its marker has reached the log and nothing before them is undecided there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tests.drills.model.exploring import World
from tests.drills.model.run_worlds import COPIED, as_receipts

from ferry.copying.ledger_compaction import merge_receipts
from ferry.ledger.receipts import Receipt, covered

Range = tuple[int, int]


@dataclass(frozen=True)
class LedgerRules:
    """True is what Ferry does."""

    fence_compaction: bool = True  # who merges takes an id of its own before it reads
    read_to_bound: bool = True  # a read ends where the log ended when it began, not where something is undecided
    data_bound_first: bool = True  # the bound of the records is taken before the one of the ledger
    merged_first: bool = True  # a merged receipt stands before the removals of those that it replaces
    receipt_before_commit: bool = True  # a receipt is in its records' transaction


class Entry(NamedTuple):
    """Of the ledger: key, the range's end (None: removed); of the records: offset, 0."""

    key: int
    end: int | None
    transaction: str


class Transaction(NamedTuple):
    """`outcome` is decided before the markers reach the logs; `waiting` are those that it has not reached."""

    outcome: str = "open"
    waiting: tuple[str, ...] = ("ledger", "records")


class Reader(NamedTuple):
    """What it captured, and then found."""

    at: str = "start"
    records: int = -1
    ledger: int = -1
    found: tuple[Range, ...] = ()


class Compaction(NamedTuple):
    """`writes`: what is still to be appended."""

    at: str = "start"
    writes: tuple[Entry, ...] = ()


class Ledger(NamedTuple):
    """The whole world. `holder`: the compaction that has the id."""

    records: tuple[Entry, ...]
    ledger: tuple[Entry, ...]
    transactions: tuple[tuple[str, Transaction], ...] = ()
    lane: str = "ready"
    tries: int = 0
    compactions: tuple[Compaction, ...] = ()
    holder: int = -1
    reader: Reader = Reader()

    def of(self, name: str) -> Transaction:
        """A transaction; what was there before is committed."""
        return dict(self.transactions).get(name, Transaction("committed", ()))

    def changed(self, name: str, transaction: Transaction) -> Ledger:
        """With one transaction begun or changed."""
        return self._replace(transactions=tuple(sorted({**dict(self.transactions), name: transaction}.items())))

    def stable(self, log: str) -> int:
        """The last stable offset of a log."""
        entries: tuple[Entry, ...] = getattr(self, log)
        return next((at for at, entry in enumerate(entries) if log in self.of(entry.transaction).waiting), len(entries))

    def committed(self, log: str, below: int | None = None) -> tuple[Entry, ...]:
        """Entries of committed transactions, in order."""
        return tuple(entry for entry in getattr(self, log)[:below] if self.of(entry.transaction).outcome == "committed")

    def compaction(self, number: int, **changes: object) -> Ledger:
        """With one compaction changed."""
        compactions = list(self.compactions)
        compactions[number] = compactions[number]._replace(**changes)
        return self._replace(compactions=tuple(compactions))


Step = tuple[str, Ledger]


@cache
def receipts_of(entries: tuple[Entry, ...]) -> tuple[Receipt, ...]:
    """The newest of every key."""
    newest: dict[int, int | None] = {}
    for entry in entries:
        newest.pop(entry.key, None)
        if entry.end is not None:
            newest[entry.key] = entry.end
    return as_receipts(tuple((COPIED, start, end) for start, end in newest.items() if end is not None))


@cache
def writes_of(entries: tuple[Entry, ...], name: str, *, merged_first: bool) -> tuple[Entry, ...]:
    """What a compaction that read `entries` appends: all but the newest receipt are old."""
    receipts = receipts_of(entries)
    newest = max(receipt.upstream_end for receipt in receipts)
    done = merge_receipts([receipt for receipt in receipts if receipt.upstream_end < newest], {})
    merged = [Entry(receipt.upstream_start, receipt.upstream_end, name) for receipt in done.merged]
    removed = [Entry(receipt.upstream_start, None, name) for receipt in done.replaced]
    return tuple(merged + removed if merged_first else removed + merged)


class LedgerModel:
    """What can happen next, under some rules. `old` receipts are there at first; the lane copies up to `end` and may abort once."""

    def __init__(self, rules: LedgerRules, *, compactions: int, reads: bool, old: int = 3, end: int = 4) -> None:
        self.rules, self.end = rules, end
        self.start = Ledger(
            tuple(Entry(offset, 0, "before") for offset in range(old)),
            tuple(Entry(at, at + 1, "before") for at in range(old)),
            compactions=(Compaction(),) * compactions,
            reader=Reader("start" if reads else "none"),
        )

    def world(self, bound: int = 200_000) -> World[Ledger]:
        """To be explored."""
        return World(self.start, self.following, self.wrong, self.done, bound)

    def done(self, world: Ledger) -> bool:
        """The lane has copied, both compactions wrote or were fenced, the reader has read."""
        ends = {compaction.at for compaction in world.compactions}
        return world.lane == "finished" and ends <= {"finished", "fenced"} and world.reader.at in {"finished", "none"}

    def wrong(self, world: Ledger) -> str:
        """Receipts that do not say what is there; a reader that finds less than lies below its bound, or more than is there at all."""
        there = {entry.key for entry in world.committed("records")}
        explained = covered(receipts_of(world.committed("ledger")))
        if there - offsets(explained):
            return "receipts were lost" if self.rules.receipt_before_commit else "records without a receipt"
        if offsets(explained) - there:
            return "receipts of records that are not there"
        if world.reader.at == "finished":
            below = {entry.key for entry in world.committed("records", world.reader.records)}
            if below - offsets(world.reader.found):
                return "a reader explains less than what lies below its bound"
            if offsets(world.reader.found) - there:
                return "a reader explains more than there is"
        return ""

    def following(self, world: Ledger) -> Iterator[Step]:
        """Each possible next step."""
        yield from self._lane(world)
        for number in range(len(world.compactions)):
            for label, after in self._compaction(world, number):
                yield f"compaction {number}: {label}", after
        yield from self._markers(world)
        for label, after in self._reader(world):
            yield f"reader: {label}", after

    # -- the lane

    def _lane(self, world: Ledger) -> Iterator[Step]:
        offset, name = len(world.committed("records")), f"transaction {world.tries}"
        match world.lane:
            case "ready" if offset >= self.end:
                yield "lane: is done", world._replace(lane="finished")
            case "ready":
                name = f"transaction {world.tries + 1}"
                begun = world.changed(name, Transaction())._replace(tries=world.tries + 1, lane="appended")
                yield f"lane: appends record {offset}", begun._replace(records=(*world.records, Entry(offset, 0, name)))
            case "appended" if not self.rules.receipt_before_commit:
                yield "lane: commits", world.changed(name, Transaction("committed", ("records",)))._replace(lane="receipt")
            case "appended":
                receipt = Entry(offset, offset + 1, name)
                yield "lane: appends the receipt", world._replace(ledger=(*world.ledger, receipt), lane="explained")
            case "explained":
                ending = world._replace(lane="ending")
                yield "lane: commits", ending.changed(name, Transaction("committed"))
                if world.tries == 1:
                    yield "lane: aborts", ending.changed(name, Transaction("aborted"))
            case "ending" if not world.of(name).waiting:
                yield "lane: goes on", world._replace(lane="ready")
            case _:
                return

    def _markers(self, world: Ledger) -> Iterator[Step]:
        for name, transaction in world.transactions:
            for log in transaction.waiting if transaction.outcome != "open" else ():
                left = tuple(other for other in transaction.waiting if other != log)
                yield f"the marker of {name} reaches the {log}", world.changed(name, transaction._replace(waiting=left))

    # -- the compactions

    def _compaction(self, world: Ledger, number: int) -> Iterator[Step]:
        compaction, name = world.compactions[number], f"merge {number}"
        held = world.holder == number or not self.rules.fence_compaction
        if not held and compaction.at in {"read", "write", "commit"}:
            yield "is refused", world.compaction(number, at="fenced", writes=())
            return
        match compaction.at:
            case "start":
                yield "takes its id", self._taken(world, number)
            case "read" if world.stable("ledger") == len(world.ledger):
                writes = writes_of(world.committed("ledger"), name, merged_first=self.rules.merged_first)
                yield "reads the ledger", world.compaction(number, at="write" if writes else "finished", writes=writes)
            case "write":
                entry, *rest = compaction.writes
                begun = world.changed(name, Transaction("open", ("ledger",)))._replace(ledger=(*world.ledger, entry))
                what = f"removes receipt {entry.key}" if entry.end is None else f"writes [{entry.key}, {entry.end})"
                yield what, begun.compaction(number, at="write" if rest else "commit", writes=tuple(rest))
            case "commit":
                yield "commits", world.changed(name, Transaction("committed", ("ledger",))).compaction(number, at="finished")
            case _:
                return

    def _taken(self, world: Ledger, number: int) -> Ledger:
        """An init waits until what it aborts has its markers; here they come with it."""
        taken = world.compaction(number, at="read")._replace(holder=number)
        if self.rules.fence_compaction:
            for name, transaction in world.transactions:
                if name.startswith("merge") and transaction.outcome == "open":
                    taken = taken.changed(name, Transaction("aborted", ()))
        return taken

    # -- a reader

    def _reader(self, world: Ledger) -> Iterator[Step]:
        reader, first = world.reader, self.rules.data_bound_first
        match reader.at:
            case "start" | "second" if (reader.at == "start") == first:
                at = "second" if first else "read"
                yield "takes the bound of the records", world._replace(reader=reader._replace(at=at, records=world.stable("records")))
            case "start" | "second":
                at = "read" if first else "second"
                yield "takes the end of the ledger", world._replace(reader=reader._replace(at=at, ledger=len(world.ledger)))
            case "read" if not self.rules.read_to_bound or world.stable("ledger") >= reader.ledger:
                entries = world.committed("ledger", min(reader.ledger, world.stable("ledger")))
                found = covered(receipts_of(entries))
                yield "reads the ledger", world._replace(reader=reader._replace(at="finished", found=found))
            case _:
                return


@cache
def offsets(ranges: tuple[Range, ...]) -> frozenset[int]:
    """Every offset of some ranges."""
    return frozenset(offset for start, end in ranges for offset in range(start, end))
