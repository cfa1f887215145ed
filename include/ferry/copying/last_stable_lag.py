"""Finds partitions whose last stable offset lags behind their high watermark, because a transaction is open there.

On the source, nothing from the last stable offset on is copied. On the target, no read_committed reader sees what comes after it. Young
transactions are normal. A transaction older than `ferry.open.transaction.warn.ms` fails the partition by name: it may hang for good (a
coordinator that has forgotten it writes no marker), and the flow would fall behind unnoticed.

High watermarks are read before last stable offsets, so that records produced in between do not look like an open transaction.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from ferry import clock
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.logs.held_back import LastStableLag, OpenTransaction
from ferry.clusters.logs.open_transactions import ONGOING, open_transactions
from ferry.clusters.net.partitions import TopicPartition
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import Flow
from ferry.copying.snapshot import FlowSnapshot
from ferry.errors import TransactionHangs
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import PartitionFailure

# A broker answers a commit before it writes the markers, and copied records may be old: so Ferry waits this long for a transaction to end.
MARKERS_SECONDS = 5.0
LOOK_SECONDS = 0.25
# A coordinator looks every 10 s for transactions whose time is over, unless its brokers are set otherwise.
NEVER_SO_LATE_MS = 600_000


def last_stable_lags(opened: OpenFlow, seen: FlowSnapshot, among: Collection[TopicPartition] | None = None) -> tuple[LastStableLag, ...]:
    """Every source and remote partition of the flow, and every partition of Ferry's own topics, with an open transaction.

    The flow's own transactions on the target count only if their coordinator has forgotten them: the next run ends the others.
    `among`: look only at these partitions of both clusters (None: at all).
    """
    flow = opened.flow
    sources = {entry.key: entry.key for entry in seen.facts}
    there = [entry for entry in seen.facts if entry.has_remote]
    remotes = {entry.remote: entry.key for entry in there} | {key: key for key in _own_partitions(flow, seen)}
    if among is not None:
        sources = {held: key for held, key in sources.items() if held in among}
        remotes = {held: key for held, key in remotes.items() if held in among}
    behind = _of_cluster(flow, opened.target, remotes)
    stable = {entry.key: entry.stable_end for entry in seen.facts}
    own = flow.transactional_id("")
    return (*_of_cluster(flow, opened.source, sources, stable), *(entry for entry in behind if not _at_work(entry.transaction, own)))


def _own_partitions(flow: Flow, seen: FlowSnapshot) -> Iterator[TopicPartition]:
    """The partitions of the flow's own topics, as far as these exist."""
    for topic in (flow.ledger_topic, flow.state_topic):
        if topic in seen.target_topics:
            yield from (TopicPartition(topic, number) for number in range(seen.target_topics[topic].partitions))


def hanging(opened: OpenFlow, seen: FlowSnapshot, among: Collection[TopicPartition] | None) -> list[PartitionFailure]:
    """One failure for each partition whose transaction has been open for too long. `among`: as of `last_stable_lags`."""
    if among is not None and not among:
        return []
    return overdue(last_stable_lags(opened, seen, among))


def overdue(found: Iterable[LastStableLag]) -> list[PartitionFailure]:
    """One failure for each partition whose transaction has been open for too long."""
    return [
        PartitionFailure(entry.topic, entry.partition, TransactionHangs.__name__, f"{entry.what}; {entry.remedy}")
        for entry in found
        if entry.overdue
    ]


def aged(entry: LastStableLag, now_ms: int, warn_ms: int) -> LastStableLag:
    """With the transaction's age at `now_ms`: since the start that its coordinator knows, else since the producer's last record there.

    Without an age if its coordinator would have ended a transaction so old: then this machine's clock is ahead.
    """
    found = entry.transaction
    if found is None:
        return entry
    since = found.started if found.started >= 0 else found.last_timestamp
    age = None if since < 0 else max(0, now_ms - since)
    if found.state == ONGOING and found.started >= 0 and age is not None and age > found.timeout + NEVER_SO_LATE_MS:
        age = None
    return replace(entry, age_ms=age, overdue=age is not None and age >= warn_ms)


def aged_by_records(hidden: list[LastStableLag], admin: ClusterAdmin, now_ms: int, warn_ms: int) -> list[LastStableLag]:
    """If Ferry cannot see producers (a right is missing, or brokers before 2.8), record times say whether a transaction is too old."""
    if not hidden:
        return []
    recent, _ = admin.offsets_for_time([entry.held for entry in hidden], now_ms - warn_ms, committed=False)
    found = []
    for entry in hidden:
        first = recent.get(entry.held, entry.stable_end)  # None: no record is younger than the threshold
        late = first is None or first > entry.stable_end
        found.append(replace(entry, age_ms=warn_ms, overdue=True) if late else entry)
    return found


def still_open(hidden: list[LastStableLag], admin: ClusterAdmin) -> list[LastStableLag]:
    """The entries, without those whose overdue transaction ends while Ferry waits, MARKERS_SECONDS at most."""
    deadline = clock.monotonic() + MARKERS_SECONDS
    while (late := [entry.held for entry in hidden if entry.overdue]) and clock.monotonic() < deadline:
        clock.sleep(LOOK_SECONDS)
        stable_ends, _ = admin.end_offsets(late)
        hidden = [entry for entry in hidden if stable_ends.get(entry.held, entry.stable_end) == entry.stable_end]
    return hidden


def _of_cluster(
    flow: Flow, opened: OpenCluster, partitions: Mapping[TopicPartition, TopicPartition], stable: Mapping[TopicPartition, int] | None = None
) -> list[LastStableLag]:
    """`stable`: last stable offsets of a moment ago. Those that have reached the high watermark are not asked for again."""
    cluster, admin = opened.cluster, opened.admin
    if stable is None:
        watermarks, stable = admin.both_ends(partitions)
    else:
        watermarks, _ = admin.end_offsets(partitions, committed=False)
    # Also after `both_ends`: if a leader had to be asked twice, its high watermark may be of a later moment.
    stable_ends, _ = admin.end_offsets([key for key, end in watermarks.items() if stable.get(key, -1) < end])
    behind = [key for key, end in watermarks.items() if stable_ends.get(key, end) < end]
    now_ms, warn_ms = round(clock.time() * 1000), flow.open_transaction_warn_ms
    found, hidden = [], []
    for key, seen in open_transactions(opened, behind).items():
        entry = LastStableLag(*partitions[key], cluster.alias, cluster.bootstrap, key, stable_ends[key], watermarks[key])
        if isinstance(seen, str):
            hidden.append(replace(entry, hidden=seen))
        elif seen:  # none: it ended meanwhile
            found.append(aged(replace(entry, transaction=seen[0], others=len(seen) - 1), now_ms, warn_ms))
    return [*found, *still_open(aged_by_records(hidden, admin, now_ms, warn_ms), admin)]


def _at_work(found: OpenTransaction | None, own: str) -> bool:
    return found is not None and (found.transactional_id or "").startswith(own) and not found.forgotten
