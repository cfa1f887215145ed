"""Compaction of a log (LogCleaner, Cleaner): of each key only the newest record stays, and offsets keep their holes.

It cleans what lies before `bound`, and never beyond the last stable offset. Records of aborted transactions go; markers stay, because a
transaction's delete horizon is days away. A producer's last batch stays, if need be without records.
"""

from __future__ import annotations

from tests.simulation.batches import Batch, records, with_records
from tests.simulation.log import Log


def compact(log: Log, bound: int, *, tombstones: bool = True) -> None:
    """Clean the log before `bound`. `tombstones`: whether records without a value stay."""
    bound = min(bound, log.stable_end)
    dirty = [batch for batch in log.batches if batch.next_offset <= bound]
    if not dirty:
        return
    aborted = _aborted(log, dirty)
    newest = {
        record.key: record.offset
        for batch in dirty
        if not batch.is_control and batch not in aborted
        for record in records(batch)
        if record.key
    }
    last = {batch.producer_id: batch.base_offset for batch in log.batches if batch.producer_id >= 0 and not batch.is_control}
    cleaned: list[Batch] = []
    for batch in dirty:
        if batch.is_control:
            cleaned.append(batch)
            continue
        kept = [
            record
            for record in records(batch)
            if batch not in aborted and newest.get(record.key) == record.offset and (tombstones or record.value is not None)
        ]
        if kept or last.get(batch.producer_id) == batch.base_offset:
            cleaned.append(with_records(batch, kept))
    log.clean(dirty, cleaned)


def _aborted(log: Log, batches: list[Batch]) -> set[Batch]:
    """The batches that belong to aborted transactions."""
    spans = [(one.producer_id, one.first, one.last) for one in log.producers.aborted]
    return {
        batch
        for batch in batches
        if batch.is_transactional
        and not batch.is_control
        and any(producer == batch.producer_id and first <= batch.base_offset < last for producer, first, last in spans)
    }
