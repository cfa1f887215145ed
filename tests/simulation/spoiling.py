"""Changes one record of a copy, or of its source, behind Ferry's back: a verify must see it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.simulation.batches import Batch, Record, records, with_records
from tests.simulation.log import Log
from tests.simulation.oracles import Copy, committed, log_of

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
    """Change a record that both logs hold. Returns what was changed, or nothing if there is no such record."""
    found = []
    for pair in copy.partitions():
        here, there = ({one.value: one for one in committed(part) if one.offset >= log_of(part).start} for part in pair)
        found += [(part, side[value].offset) for part, side in zip(pair, (here, there), strict=True) for value in here if value in there]
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
