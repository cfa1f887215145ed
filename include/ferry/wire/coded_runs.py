"""Runs of a receipt in their coded form (wire/runs.py). Their number, the first and the last run are known without decoding all of them.

A partition that gets records all the time has a run for each commit, and most readers of a ledger need the runs of few receipts. A decoded
run takes fifty times as many bytes. A regular expression checks the form at once, so decoding later cannot fail.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import overload

from ferry.wire import varint
from ferry.wire.runs import VERSION, OffsetRun, decode_runs, encode_runs

# Numbers of at most six bytes: then the sum of all that fit into a record is no larger than an offset can be.
_NUMBER = rb"(?:[\x00-\x7f]|[\x80-\xff]{1,5}[\x01-\x7f])"
_COUNT = rb"(?:[\x01-\x7f]|[\x80-\xff]{1,5}[\x01-\x7f])"
_VERSION = re.escape(bytes((VERSION,)))
# A run that continues the one before it on both sides is not written: it would be one run with it.
_RUNS = re.compile(rb"%s%s%s%s(?:(?!\x00\x00)%s%s%s)*" % (_VERSION, *(_NUMBER, _NUMBER, _COUNT) * 2))
_TIGHT = re.compile(rb"%s%s%s%s(?:%s[\x00\x01]%s)*" % (_VERSION, _NUMBER, _NUMBER, _COUNT, _NUMBER, _COUNT))
_ANY_NUMBER = re.compile(rb"[\x80-\xff]*[\x00-\x7f]")
_FOLLOWED = bytes(range(0x80, 0x100))  # bytes of a number that another byte follows


class CodedRuns(Sequence[OffsetRun]):
    """Equal to the tuple of its runs."""

    def __init__(self, data: bytes) -> None:
        """`data`: coded runs, whose form was checked (see coded_runs)."""
        self.data = data

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _length(self) -> int:
        return (len(self.data.translate(None, _FOLLOWED)) - 1) // 3

    def __iter__(self) -> Iterator[OffsetRun]:
        return iter(self._decoded())

    @overload
    def __getitem__(self, at: int) -> OffsetRun: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[OffsetRun, ...]: ...
    def __getitem__(self, at: int | slice) -> OffsetRun | tuple[OffsetRun, ...]:
        if at == 0:
            return self._first
        if at == -1:
            return self._last
        return (self._first,) if at == slice(None, 1) else self._decoded()[at]

    @cached_property
    def _first(self) -> OffsetRun:
        upstream, at = varint.decode_unsigned(self.data, 1)
        downstream, at = varint.decode_unsigned(self.data, at)
        return upstream, downstream, varint.decode_unsigned(self.data, at)[0]

    @cached_property
    def _last(self) -> OffsetRun:
        numbers = _ANY_NUMBER.findall(self.data, 1)
        upstream_gaps, downstream_gaps, counts = (sum(map(_VALUES.__getitem__, numbers[side::3])) for side in range(3))
        count = _VALUES[numbers[-1]]
        return upstream_gaps + counts - count, downstream_gaps + counts - count, count

    @cached_property
    def tight(self) -> bool:
        """Whether at most one offset of the target is between two neighbouring runs."""
        return _TIGHT.fullmatch(self.data) is not None

    def _decoded(self) -> tuple[OffsetRun, ...]:
        return decode_runs(self.data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CodedRuns):
            return self.data == other.data
        return isinstance(other, tuple) and self._decoded() == other

    def __hash__(self) -> int:
        return hash(self._decoded())

    def __repr__(self) -> str:
        return repr(self._decoded())


class _Values(dict[bytes, int]):
    """The value of a number, by its bytes. Short ones are kept: there are few, and they come again and again."""

    def __missing__(self, number: bytes) -> int:
        value, _ = varint.decode_unsigned(number, 0)
        if len(number) <= _SHORT:
            self[number] = value
        return value


_SHORT = 2
_VALUES = _Values()


def coded_runs(data: bytes) -> Sequence[OffsetRun]:
    """The runs that `encode_runs` has coded. ValueError as of `decode_runs`."""
    return CodedRuns(data) if _RUNS.fullmatch(data) else decode_runs(data)


def joined_coded(parts: Sequence[Sequence[OffsetRun]]) -> bytes:
    """All runs of `parts`, one part after the other, as `encode_runs` codes them, with its errors. Coded runs are not decoded for it."""
    coded = [part for part in parts if isinstance(part, CodedRuns)]
    if not coded or len(coded) < len(parts):
        return encode_runs(chain.from_iterable(parts))
    encoded = bytearray(coded[0].data)
    for before, part in pairwise(coded):
        last, first = before[-1], part[0]
        gaps = first[0] - (last[0] + last[2]), first[1] - (last[1] + last[2])
        if min(gaps) < 0 or not any(gaps):  # encode_runs refuses the one, and makes one run of the other
            return encode_runs(chain.from_iterable(parts))
        # The gaps of the part's first run count from 0: others replace them.
        _, at = varint.decode_unsigned(part.data, 1)
        _, at = varint.decode_unsigned(part.data, at)
        encoded += varint.encode_unsigned(gaps[0]) + varint.encode_unsigned(gaps[1]) + part.data[at:]
    return bytes(encoded)


def tight(runs: Sequence[OffsetRun]) -> bool:
    """Whether at most one offset of the target is between two neighbouring runs."""
    return runs.tight if isinstance(runs, CodedRuns) else all(later[1] - (run[1] + run[2]) <= 1 for run, later in pairwise(runs))
