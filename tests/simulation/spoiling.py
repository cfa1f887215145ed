"""Changes one record of a copy, or of its source, behind Ferry's back: a verify must see it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.simulation.batches import Batch, Record, records, with_records
from tests.simulation.log import Log
from tests.simulation.oracles import Copy, committed, log_of, receipts

# What becomes of a record, by the one before it: in the end, that one is there twice, and the record is not.
CHANGES: dict[str, Callable[[Record, Record], Record]] = {
    "value": lambda one, _: one._replace(value=b"!" + (one.value or b"")[1:]),
    "no value": lambda one, _: one._replace(value=None),
    "key": lambda one, _: one._replace(key=(one.key or b"") + b"!"),
    "time": lambda one, _: one._replace(timestamp=one.timestamp + 1),
    "header": lambda one, _: one._replace(headers=[*one.headers, ("more", b"")]),
    "record": lambda one, other: other._replace(offset=one.offset),
}


def spoil(copy: Copy, chance: Random) -> str:
    """Change a record that both logs hold. Returns what was changed, or nothing if there is no such record.

    On the target it is a copy that receipts name: a run without transactions may leave others, and a verify says that it compares none of
    these.
    """
    known, found = receipts(copy), []
    for source, target in copy.partitions():
        runs = [run for one in known if (one.topic, one.partition) == source.key for run in one.runs]
        named = {offset for _, first, count in runs for offset in range(first, first + count)}
        here = {one.value: one.offset for one in committed(source) if one.offset >= log_of(source).start}
        there = {one.value: one.offset for one in committed(target) if one.offset >= log_of(target).start and one.offset in named}
        found += [(part, side[value]) for part, side in ((source, here), (target, there)) for value in here if value in there]
    if not found:
        return ""
    part, offset = chance.choice(found)
    what = chance.choice(list(CHANGES))
    _change(log_of(part), offset, what)
    return f"the {what} of {part.topic}-{part.index} at {offset}"


def _change(log: Log, offset: int, what: str) -> None:
    batches = list(log.batches)
    place = next(place for place, batch in enumerate(batches) if batch.base_offset <= offset < batch.next_offset)
    batches[place] = _changed(batches[place], offset, what)
    log.replace(batches)


def _changed(batch: Batch, offset: int, what: str) -> Batch:
    held = list(records(batch))
    at = next(number for number, one in enumerate(held) if one.offset == offset)
    held[at] = CHANGES[what](held[at], held[at - 1] if at else held[at]._replace(value=b"of another one"))
    return with_records(batch._replace(records=-1), held)  # it builds no batch anew that keeps the number of its records
