"""Offset syncs from the ledger, so that MM2's own checkpoint connector can translate what Ferry copied.

A sync is the pair of offsets of one record. MM2 emits one every `offset.lag.max` records, after every gap, and for the last record of a
commit. Its reader (OffsetSyncStore) keeps 64 syncs a partition; the further they are from the newest, the sparser they get, by powers of
two. Ferry spaces the syncs of a run in this way: one for the newest record, one each for the last record at least lag, 2*lag, 4*lag, …
offsets before it, and the first time one for the oldest record. That makes 16 a partition for a run of a million records, and never more
than 66. The reader would not keep more of a denser series.

The topic itself shows how far syncs were written. The syncs of a partition only rise on both sides, because a lower one makes the reader
forget all others. So backfilled ranges are never emitted. If a record was copied twice, its first copy counts. There is one exception: the
last sync is about other records, because a topic was created again, or because Ferry copies again what MM2 had copied.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from ferry.clusters.logs.internal_producer import append_records, ask_identity
from ferry.clusters.net.partitions import TopicPartition
from ferry.config.mm2_topics import offset_syncs_topic
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.reading import read_receipts
from ferry.ledger.receipts import Receipt, ReceiptKind
from ferry.ledger.state import Head
from ferry.ledger.sync_outcome import Change, SyncOutcome
from ferry.ledger.topic_ids import valid_receipts
from ferry.syncs.mm2_topics import PARTITION, ensure_mm2_topic, read_mm2_topic
from ferry.wire.internal_records import OffsetSync
from ferry.wire.runs import UPSTREAM, OffsetRun, once


def sync_offset_syncs(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Write syncs for what was copied since the last ones. NotAuthorized or ClusterUnreachable when topic or ledger cannot be used."""
    flow = opened.flow
    topic = offset_syncs_topic(flow)
    changes = ensure_mm2_topic(opened, topic, dry_run=dry_run)
    asked = opened.ask_anew(stable=True)
    contents = read_mm2_topic(opened, topic, OffsetSync.decode)
    last = {TopicPartition(sync.topic, sync.partition): sync for sync in contents.records}
    heads = asked.answer().state.heads
    # Nothing is new where the position follows the last sync, so most runs do not read the ledger here.
    behind = {key: head for key, head in heads.items() if key not in last or head.position != last[key].upstream_offset + 1}
    identity = ask_identity(opened.side(topic.cluster)) if behind and not dry_run else None
    copied = copied_runs(read_receipts(opened, behind), behind, last) if behind else {}
    spacing = flow.mirroring.offset_lag_max
    new = [sync for key, runs in sorted(copied.items()) for sync in new_syncs(key, runs, last.get(key), spacing)]
    if new and identity is not None:
        records = [(sync.encode_key(), sync.encode_value()) for sync in new]
        append_records(opened.side(topic.cluster), {topic.name: records}, partition=PARTITION, identity=identity)
    counts = {"partitions": len(heads), "written": len(new)}
    return SyncOutcome((*changes, *_changes(new, last)), notices=contents.notices(), counts=counts)


def copied_runs(
    receipts: Iterable[Receipt], heads: Mapping[TopicPartition, Head], last: Mapping[TopicPartition, OffsetSync]
) -> dict[TopicPartition, tuple[OffsetRun, ...]]:
    """Runs copied in order, by partition, between the topics that the heads name; increasing on both sides (pure).

    If the `last` sync is the pair of a copied record, runs before it are left out. Most runs are before it, and are not even decoded.
    """
    copied = (receipt for receipt in receipts if receipt.kind is ReceiptKind.COPIED)
    valid = valid_receipts(copied, {key: head.topic_ids for key, head in heads.items()})
    return {key: _since(found, last.get(key)) or _in_order(found) for key, found in valid.items()}


def _since(receipts: Iterable[Receipt], last: OffsetSync | None) -> tuple[OffsetRun, ...]:
    """The runs from the receipt of the last sync on; none if it is not the pair of a record there."""
    if last is None:
        return ()
    runs = _in_order(receipt for receipt in receipts if receipt.upstream_end > last.upstream_offset)
    return runs if runs and runs[0][0] <= last.upstream_offset and _about_these_records(runs, last) else ()


def _in_order(receipts: Iterable[Receipt]) -> tuple[OffsetRun, ...]:
    return tuple(once((run for receipt in receipts for run in receipt.runs), UPSTREAM))


def new_syncs(key: TopicPartition, runs: Sequence[OffsetRun], last: OffsetSync | None, spacing: int) -> tuple[OffsetSync, ...]:
    """The syncs to write for one partition, in order (pure). `spacing` in offsets; `last`: the newest sync in the topic."""
    if not runs:
        return ()
    newest = runs[-1][0] + runs[-1][2] - 1
    if last is not None and not _about_these_records(runs, last):
        last = None
    floor = runs[0][0] if last is None else max(runs[0][0], last.upstream_offset + 1)
    if newest < floor:
        return ()
    wanted = {_pair_at_or_before(runs, floor)} if last is None else set[tuple[int, int]]()
    distance = 0
    while newest - distance >= floor:
        wanted.add(_pair_at_or_before(runs, newest - distance))
        distance = distance * 2 or max(1, spacing)
    return tuple(OffsetSync(*key, upstream, downstream) for upstream, downstream in sorted(wanted) if upstream >= floor)


def _about_these_records(runs: Sequence[OffsetRun], sync: OffsetSync) -> bool:
    """Whether a sync is about the log that was copied: it is older than all runs, or it is the pair of a record of them."""
    if sync.upstream_offset < runs[0][0]:
        return sync.downstream_offset < runs[0][1]
    return _pair_at_or_before(runs, sync.upstream_offset) == (sync.upstream_offset, sync.downstream_offset)


def _pair_at_or_before(runs: Sequence[OffsetRun], upstream: int) -> tuple[int, int]:
    """Upstream and downstream offset of the last record that is not behind `upstream`."""
    start, downstream, count = runs[bisect_right(runs, upstream, key=lambda run: run[0]) - 1]
    record = min(upstream, start + count - 1)
    return record, downstream + record - start


def _changes(new: Iterable[OffsetSync], last: Mapping[TopicPartition, OffsetSync]) -> list[Change]:
    changes = []
    for key, found in groupby(new, lambda sync: TopicPartition(sync.topic, sync.partition)):
        syncs, before = list(found), last.get(key)
        back = before is not None and syncs[0].upstream_offset <= before.upstream_offset
        detail = f"{len(syncs)} up to upstream {syncs[-1].upstream_offset}, downstream {syncs[-1].downstream_offset}"
        reason = "the last sync is about other records: a topic was created again, or copied again" if back else "copied since"
        changes.append(Change(f"offset syncs of {key.topic}-{key.partition}", "write", detail, reason))
    return changes
