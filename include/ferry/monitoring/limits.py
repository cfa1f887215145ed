"""Which limits of the config a flow exceeds, by its status (pure).

Each limit holds for each topic: `lag.records` for the sum over its partitions, `lag.seconds` for its oldest uncopied record,
`headroom.seconds` for the record that the source drops first. A number that is not known (an age that could not be read in time) breaks no
limit. A topic without lag has no headroom to run out of. Heartbeats do not count.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ferry.alerting.alert import Alert, AlertKind, Severity
from ferry.clusters.net.partitions import grouped
from ferry.config.settings import DEADLINE_SECONDS, HEADROOM_SECONDS, LAG_RECORDS, LAG_SECONDS, AlertSettings
from ferry.errors import LimitsBroken, count_of, span
from ferry.monitoring.lag import Lag, PartitionStatus, counted, lag_of

# A message names at most this many topics: after an outage thousands may exceed a limit.
NAMED = 5
RUN_NOW = "start a run now, and raise the source's retention"


@dataclass(frozen=True)
class BrokenLimit:
    """A topic that exceeds a limit: `key` of the config, `value` and `limit` in the key's unit.

    For the deadline `topic` is empty, and `value` says how long ago (s) the run was due that has not ended.
    """

    key: str
    topic: str
    value: float
    limit: float

    def __str__(self) -> str:
        if self.key == DEADLINE_SECONDS:
            return f"a run was due {self.value:,.0f} s ago, and none has ended since; a run has {self.limit:,.0f} s to end"
        limit = f"{self.key}={self.limit:.0f}"
        if self.key == HEADROOM_SECONDS:
            soon = f"in {span(self.value)}" if self.value > 0 else "at any moment"
            return f"topic {self.topic}: the source deletes uncopied records {soon}, below {limit}"
        behind = span(self.value) if self.key == LAG_SECONDS else count_of(round(self.value), "record")
        return f"topic {self.topic} is {behind} behind, above {limit}"


def broken_limits(settings: AlertSettings, partitions: Iterable[PartitionStatus]) -> tuple[BrokenLimit, ...]:
    """Every topic that exceeds a limit: by key, and for each key the worst first."""
    if not settings.has_limits:
        return ()
    topics = grouped((entry.topic, entry) for entry in counted(partitions))
    found = [broken for topic, entries in topics.items() for broken in _of_topic(settings, topic, lag_of(entries))]
    return tuple(sorted(found, key=lambda entry: (_ORDER.index(entry.key), -abs(entry.value - entry.limit), entry.topic)))


def limits_broken(flow: str, broken: tuple[BrokenLimit, ...], *, copied: bool = False) -> LimitsBroken:
    """The error for these limits. It names the worst topics of each key. `copied`: the run itself copied all that it should."""
    told = "; ".join(map(described, grouped((entry.key, entry) for entry in broken).values()))
    problem = LimitsBroken(f"{flow}: {'the copy is fine, but a limit is broken: ' if copied else ''}{told}")
    problem.broken = broken
    problem.next_step = step_of(broken[0].key)
    return problem


def step_of(key: str) -> str:
    """What to do about a broken limit of this key."""
    return RUN_NOW if key == HEADROOM_SECONDS else LimitsBroken.next_step


def limit_alerts(flow: str, broken: Iterable[BrokenLimit], *, run_id: str = "", url: str = "") -> list[Alert]:
    """One alert for each key: the value of its worst topic, and the names of the others."""
    return [
        Alert(
            flow=flow,
            kind=AlertKind.LIMIT,
            severity=Severity.CRITICAL if key == HEADROOM_SECONDS else Severity.WARNING,
            what=key,
            message=f"{flow}: {described(topics)}",
            next_step=step_of(key),
            value=topics[0].value,
            limit=topics[0].limit,
            run_id=run_id,
            url=url,
        )
        for key, topics in grouped((entry.key, entry) for entry in broken).items()
    ]


def described(broken: list[BrokenLimit]) -> str:
    """Broken limits of one key in a line."""
    more = f" and {count_of(len(broken) - NAMED, 'more topic')}" if len(broken) > NAMED else ""
    return "; ".join(str(entry) for entry in broken[:NAMED]) + more


_ORDER = (HEADROOM_SECONDS, LAG_SECONDS, LAG_RECORDS)


def _of_topic(settings: AlertSettings, topic: str, lag: Lag) -> Iterator[BrokenLimit]:
    headroom = lag.headroom_seconds
    if settings.headroom_seconds is not None and headroom is not None and headroom < settings.headroom_seconds:
        yield BrokenLimit(HEADROOM_SECONDS, topic, headroom, settings.headroom_seconds)
    if settings.lag_seconds is not None and lag.seconds > settings.lag_seconds:
        yield BrokenLimit(LAG_SECONDS, topic, lag.seconds, settings.lag_seconds)
    if settings.lag_records is not None and lag.records > settings.lag_records:
        yield BrokenLimit(LAG_RECORDS, topic, lag.records, settings.lag_records)
