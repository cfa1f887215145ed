"""Mutants of what reads the copies: the translation of offsets, and the comparison of both logs."""

from __future__ import annotations

from tests.simulation.mutating import mutant_of as _of

OF_READERS = (
    # Translation.
    _of(
        "end-of-the-log",
        "behind all records, an offset translates to the end of the last copied one",
        "translation.offset_map",
        ("self.end = nothing if copied_end < 0 else copied_end", "self.end = nothing"),
    ),
    _of(
        "begin-of-the-run",
        "an offset within a run translates to a place within it",
        "translation.run_index",
        ("        return place + max(0, upstream - start)\n", "        return place\n"),
    ),
    _of(
        "end-of-the-run",
        "an offset behind a run translates to the next one",
        "translation.run_index",
        ("        at = bisect_right(self._ends, upstream)\n", "        at = bisect_left(self._ends, upstream)\n"),
        ("import bisect_right\n", "import bisect_left, bisect_right\n"),
    ),
    _of(
        "begin-of-the-copies",
        "an offset of the target within a run translates to a place within it",
        "translation.run_index",
        ("            here = upstream + downstream - place\n", "            here = upstream\n"),
    ),
    # Verify.
    _of(
        "stored-alike",
        "batches as they are stored are equal if their bytes are",
        "verify.comparer",
        ("return bytearray(here.view[HEADER_SIZE:]) == there.view[HEADER_SIZE:]", "return True"),
    ),
    _of(
        "times-alike",
        "a verify compares times too",
        "verify.comparer",
        ("            left.timestamps[i : i + count] == right.timestamps[j : j + count]\n            and left", "            left"),
    ),
    _of(
        "aborted-compared",
        "a verify leaves out aborted records",
        "verify.log_reader",
        ("            if dropped or header.is_control:\n", "            if header.is_control:\n"),
    ),
)
