"""Runs of a receipt: which upstream offsets became which downstream offsets, in few bytes.

A run (upstream start, downstream start, count) says that `count` records with consecutive upstream offsets have consecutive downstream
offsets. Runs are strictly increasing on both sides and do not overlap. Encoded: one version byte, then for each run the gaps after the end
of the run before it (for the first: after 0), upstream and downstream, and its count, as unsigned varints: about 3 bytes a run.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

from ferry.wire import varint
from ferry.wire.ranges import NO_END, Ranges

VERSION = 1

OffsetRun = tuple[int, int, int]
# The index of a run's start on either side.
UPSTREAM, DOWNSTREAM = 0, 1


def offsets_of(runs: Iterable[OffsetRun], side: int) -> Ranges:
    """The offsets of runs on one side, in the order of the runs."""
    return tuple((run[side], run[side] + run[2]) for run in runs)


def end_of(runs: Sequence[OffsetRun], side: int) -> int:
    """The end of the last of these runs on one side."""
    return runs[-1][side] + runs[-1][2]


def run_at(runs: Sequence[OffsetRun], offset: int, side: int) -> OffsetRun | None:
    """The run that holds an offset of one side."""
    index = bisect_right(runs, offset, key=itemgetter(side))
    run = runs[index - 1] if index else None
    return run if run is not None and offset < run[side] + run[2] else None


def counterpart(runs: Sequence[OffsetRun], offset: int, side: int) -> int:
    """The offset on the other side; -1: no run holds this one."""
    run = run_at(runs, offset, side)
    return -1 if run is None else run[1 - side] + offset - run[side]


def once(runs: Iterable[OffsetRun], side: int) -> list[OffsetRun]:
    """`runs` in order of the target's log. Leaves out records whose offset on `side` is below the end of an earlier run."""
    found: list[OffsetRun] = []
    end = 0
    for run in sorted(runs, key=itemgetter(DOWNSTREAM)):
        upstream, downstream, count = run
        cut = max(0, end - run[side])
        if cut < count:
            found.append((upstream + cut, downstream + cut, count - cut))
            end = run[side] + count
    return found


def normalise(runs: Iterable[OffsetRun]) -> tuple[OffsetRun, ...]:
    """The same runs, with runs joined that continue each other. ValueError unless they increase on both sides and hold records."""
    joined: list[OffsetRun] = []
    upstream_end = downstream_end = 0
    for upstream, downstream, count in runs:
        if upstream < upstream_end or downstream < downstream_end or count < 1:
            run = upstream, downstream, count
            raise ValueError(f"the run {run} does not follow upstream {upstream_end}, downstream {downstream_end}")
        if joined and upstream == upstream_end and downstream == downstream_end:
            joined[-1] = (*joined[-1][:2], joined[-1][2] + count)
        else:
            joined.append((upstream, downstream, count))
        upstream_end, downstream_end = upstream + count, downstream + count
    if max(upstream_end, downstream_end) > NO_END:
        raise ValueError(f"the runs end at upstream {upstream_end}, downstream {downstream_end}: no offset is that large")
    return tuple(joined)


def encode_runs(runs: Iterable[OffsetRun]) -> bytes:
    """The runs as bytes, normalised first. Raises ValueError as `normalise` does."""
    encoded = bytearray((VERSION,))
    upstream_end = downstream_end = 0
    for upstream, downstream, count in normalise(runs):
        encoded += varint.encode_unsigned(upstream - upstream_end)
        encoded += varint.encode_unsigned(downstream - downstream_end)
        encoded += varint.encode_unsigned(count)
        upstream_end, downstream_end = upstream + count, downstream + count
    return bytes(encoded)


def decode_runs(data: bytes | bytearray | memoryview) -> tuple[OffsetRun, ...]:
    """The inverse of `encode_runs`. ValueError for another version, and for bytes that it would not write."""
    if not data or data[0] != VERSION:
        raise ValueError(f"runs of version {data[0] if data else 'none'}; this Ferry reads version {VERSION}")
    runs: list[OffsetRun] = []
    at = 1
    upstream_end = downstream_end = 0
    while at < len(data):
        upstream_gap, at = varint.decode_unsigned(data, at)
        downstream_gap, at = varint.decode_unsigned(data, at)
        count, at = varint.decode_unsigned(data, at)
        runs.append((upstream_end + upstream_gap, downstream_end + downstream_gap, count))
        upstream_end += upstream_gap + count
        downstream_end += downstream_gap + count
    return normalise(runs)
