"""What the lag of a flow does not say, in words (pure).

The lag counts records between the position and the end of the partitions that Ferry copies and can read. It knows nothing of topics that
are left out, of copies that are gone with a remote topic, nor of what is behind an open transaction.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ferry.clusters.net.partitions import grouped
from ferry.errors import PartitionUnavailable, count_of, some_of
from ferry.ledger.run_report import PartitionFailure
from ferry.monitoring.health import FlowHealth

# People read no more names at once.
NAMED = 3


class LeftOutTopics(NamedTuple):
    word: str  # how many there are; `text` begins with it
    text: str
    next_step: str


def left_out_topics(health: FlowHealth) -> LeftOutTopics | None:
    """The topics that people expect to be copied, and that are not; None: there are none."""
    found = grouped((entry.reason, entry.what) for entry in health.left_out if entry.expected)
    if not found:
        return None
    total, records = sum(map(len, found.values())) + health.left_out_cut, health.left_out_records
    word = f"{count_of(total, 'topic')} {'is' if total == 1 else 'are'} not copied"
    whys = [(some_of(names, NAMED), *reason.partition("; ")[::2]) for reason, names in found.items()]  # why, then what to do
    told = [f"{names}: {why}" for names, why, _ in whys]
    told += [f"{count_of(health.left_out_cut, 'topic')} more"] if health.left_out_cut else []
    source, _, _ = health.flow.partition("->")
    has = f"; {source} has {count_of(records or 0, 'record')} of {'it' if total == 1 else 'them'} that no run copied"
    steps = [f"{names}: {step}" for names, _, step in whys]
    return LeftOutTopics(word, f"{word}: {some_of(told, NAMED, '; ')}{'' if records is None else has}", some_of(steps, NAMED, "; "))


def copies_gone(health: FlowHealth, stopped: Iterable[PartitionFailure]) -> str:
    """What the target lacks if copies of these partitions are gone with their remote topic; empty: none are."""
    source, _, target = health.flow.partition("->")
    gone = {(failure.topic, failure.partition): "(the source " in failure.problem for failure in stopped if " is gone" in failure.problem}
    known = [row for row in health.partitions if gone.get((row.topic, row.partition))]
    kept, waiting = sum(max(0, row.position - row.log_start) for row in known), sum(row.lag_records for row in known)
    least = "at least " if health.stopped_cut else ""
    lacks = f": {target} lacks {least}{count_of(kept + waiting, 'record')} that {source} has, {kept:,} that were copied before"
    by_time = kept and any(row.headroom_seconds is not None for row in known)
    lacks += f" ({source} deletes these first, before the headroom ends)" if by_time else ""
    lacks += f", and {waiting:,} that were not copied yet"
    return f" on {target}, and the copies there are gone{lacks if known else ''}" if gone else ""


def not_counted(health: FlowHealth) -> list[str]:
    """What the lag leaves out, in words: topics and partitions that could not be read, and records behind transactions."""
    unread = [failure.where for failure in health.stopped if is_unread(failure)]
    waiting = sum(entry.waiting for entry in health.held)
    found = [f"unknown for {some_of(unread, NAMED)}"] if unread else []
    return found + ([f"{count_of(waiting, 'record')} behind an open transaction"] if waiting else [])


def up_to_date(health: FlowHealth) -> str:
    """The topics of which everything is copied, if partitions are stopped and others lag; none if the list of stopped ones is cut."""
    not_fine = {entry.topic for entry in health.counted if entry.lag_records}
    not_fine |= {entry.topic for entry in (*health.losses, *health.expired)} | {entry.topic for entry in health.missing}
    not_fine |= {entry.topic for entry in health.stopped} | {entry.topic for entry in health.held}
    told = health.stopped and health.lag.records and not health.stopped_cut
    return some_of(sorted({entry.topic for entry in health.counted} - not_fine), NAMED) if told else ""


def is_unread(failure: PartitionFailure) -> bool:
    """Whether the lag leaves it out: a whole topic, or a partition whose end nobody could read."""
    return failure.partition < 0 or failure.error == PartitionUnavailable.__name__
