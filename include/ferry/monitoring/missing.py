"""Records that are missing: the source has them below the position, and no receipt settles them. Only a backfill copies them (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote

COMPACTED = "the remote topic is compacted: older records appended behind newer ones would replace them, so Ferry refuses a backfill"
NO_TIME = "its records have no usable time: ferry backfill cannot copy them either"
# Kafka's times are milliseconds of 63 bits; nobody's clock is beyond the year 9999.
LAST_MOMENT = 253_402_300_799_000
# With more topics, the command is about all topics of the flow.
TOPICS_NAMED = 5


@dataclass(frozen=True)
class Missing:
    """Upstream `[start, end)` of a partition."""

    topic: str
    partition: int
    start: int
    end: int
    first_time: int = -1  # time of its first record in ms; -1: not known
    obstacle: str = ""  # why Ferry refuses a backfill
    kept_seconds: float | None = None  # how long the source keeps a record. None: it drops none by time

    @property
    def dropped_at(self) -> float | None:
        """When the source may drop its first record, in seconds since the epoch. None: never by time, or not known."""
        return None if self.kept_seconds is None or self.first_time < 0 else self.first_time / 1000 + self.kept_seconds

    @property
    def closable(self) -> bool:
        """Whether a backfill copies it."""
        return not self.obstacle and self.first_time >= 0

    @property
    def records(self) -> int:
        """Offsets, so control records count too."""
        return self.end - self.start


def backfill_command(command: str, missing: Sequence[Missing], now: float) -> str:
    """The command that copies these ranges, for a person to paste; empty if none does (pure). `command`: `ferry backfill` with its flow.

    The interval ends now, or behind a first record that has a later time. It may be too long: the ledger covers all other records of the
    interval, and a backfill copies nothing twice.
    """
    closable = [entry for entry in missing if entry.closable]
    if not closable:
        return ""
    topics = dict.fromkeys(entry.topic for entry in closable)
    firsts = [entry.first_time // 1000 for entry in closable]
    since, until = min(firsts), max(int(now), *firsts) + 1
    start, end = (datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (since, until))
    named = "".join(f" --topic {quote(topic)}" for topic in topics) if len(topics) <= TOPICS_NAMED else ""
    return f"{command}{named} --from {start} --until {end}"


def missing_by_topic(missing: Iterable[Missing]) -> dict[str, int]:
    """How many records are missing in each topic, most first."""
    found: dict[str, int] = {}
    for entry in missing:
        found[entry.topic] = found.get(entry.topic, 0) + entry.records
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
