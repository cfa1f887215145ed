"""Runs of a receipt in their coded form (wire/runs.py), decoded when somebody asks for more than their number and the first one.

A partition that gets records all the time has a run for each commit, and most readers of a ledger need the runs of few receipts. Decoded,
a run takes fifty times as many bytes. A regular expression checks the form at once, so decoding later cannot fail.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import overload

from ferry.wire import varint
from ferry.wire.runs import VERSION, OffsetRun, decode_runs

# Numbers of at most six bytes, so that no sum of all that fit into a record is larger than an offset can be.
_NUMBER = rb"(?:[\x00-\x7f]|[\x80-\xff]{1,5}[\x01-\x7f])"
_COUNT = rb"(?:[\x01-\x7f]|[\x80-\xff]{1,5}[\x01-\x7f])"
_VERSION = re.escape(bytes((VERSION,)))
# A run that continues the one before it on both sides is not written: it would be one run with it.
_RUNS = re.compile(rb"%s%s%s%s(?:(?!\x00\x00)%s%s%s)*" % (_VERSION, *(_NUMBER, _NUMBER, _COUNT) * 2))
_TIGHT = re.compile(rb"%s%s%s%s(?:%s[\x00\x01]%s)*" % (_VERSION, _NUMBER, _NUMBER, _COUNT, _NUMBER, _COUNT))
_FOLLOWED = bytes(range(0x80, 0x100))  # bytes of a number that others follow


class CodedRuns(Sequence[OffsetRun]):
    """Equal to the tuple of its runs."""

    def __init__(self, data: bytes) -> None:
        """`data` as coded_runs found it to be well-formed."""
        self._data = data

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _length(self) -> int:
        return (len(self._data.translate(None, _FOLLOWED)) - 1) // 3

    def __iter__(self) -> Iterator[OffsetRun]:
        return iter(self._decoded())

    @overload
    def __getitem__(self, at: int) -> OffsetRun: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[OffsetRun, ...]: ...
    def __getitem__(self, at: int | slice) -> OffsetRun | tuple[OffsetRun, ...]:
        if at == 0:
            return self._first
        return (self._first,) if at == slice(None, 1) else self._decoded()[at]

    @cached_property
    def _first(self) -> OffsetRun:
        upstream, at = varint.decode_unsigned(self._data, 1)
        downstream, at = varint.decode_unsigned(self._data, at)
        return upstream, downstream, varint.decode_unsigned(self._data, at)[0]

    @cached_property
    def tight(self) -> bool:
        """As of the function `tight`."""
        return _TIGHT.fullmatch(self._data) is not None

    def _decoded(self) -> tuple[OffsetRun, ...]:
        return decode_runs(self._data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CodedRuns):
            return self._data == other._data
        return isinstance(other, tuple) and self._decoded() == other

    def __hash__(self) -> int:
        return hash(self._decoded())

    def __repr__(self) -> str:
        return repr(self._decoded())


def coded_runs(data: bytes) -> Sequence[OffsetRun]:
    """The runs that `encode_runs` has coded. ValueError as of `decode_runs`."""
    return CodedRuns(data) if _RUNS.fullmatch(data) else decode_runs(data)


def tight(runs: Sequence[OffsetRun]) -> bool:
    """Whether at most one offset of the target is between two neighbouring runs."""
    if isinstance(runs, CodedRuns):
        return runs.tight
    return all(later[1] - (run[1] + run[2]) <= 1 for run, later in pairwise(runs))
