"""Watches flows for `ferry watch`: a thread for each flow reads its status again and again, so no flow waits for another one.

A frame is computed from one look and the look before (pure). The speed of a flow is how far its positions moved between two looks. A look
reads as much as a plan does. A look at a cluster that does not answer ends after the cluster's time-outs, and has a problem.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from ferry import clock
from ferry.clusters.net.partitions import grouped
from ferry.config import Flow
from ferry.errors import FerryError, count_of
from ferry.ledger.open_flow import open_flow
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import Lag, lag_of
from ferry.monitoring.runs import told_gone
from ferry.monitoring.status import flow_status, status_after_run
from ferry.monitoring.verdict import Verdict, verdict_of
from ferry.wire.strict_json import parse_time

TOPICS_SHOWN = 8
# A flow counts as copying for this time after a position moved.
MOVED_SECONDS = 15.0
# A run that follows keeps up as long as no record is older: if it dies, nobody says so.
LATE_SECONDS = 15.0
# Time between two reads of the ledger (for losses) and the runs topic: reading a large ledger takes seconds.
WHOLE_SECONDS = 60.0
# What a look after a run reads again.
QUICK = ("partitions", "last_stable_lags", "stage", "stage_since", "stopped", "expired", "ran")
# After an outage, frames say for this time how long it was: a person may miss what only one frame says.
OUTAGE_SHOWN_SECONDS = 60.0
UNREACHABLE = "no answer"
# As in status documents.
UNKNOWN = -1.0


@dataclass(frozen=True)
class Look:
    """One read of a flow, that ended at `at` (s since the epoch). `problem`: why it failed; `health` is then what was known before."""

    at: float
    health: FlowHealth
    problem: str = ""
    began: float = 0.0  # when it began: a cluster that does not answer did not do so then


@dataclass(frozen=True)
class TopicLag:
    """The lag of one source topic, over all its partitions.

    `headroom_seconds` 0: the source may drop records at any moment; None: it drops none by time; UNKNOWN: it could not be read.
    """

    topic: str
    records: int
    seconds: float
    headroom_seconds: float | None


@dataclass(frozen=True)
class FlowFrame:
    """What is shown of a flow. Rates in records/s, None before the second look."""

    flow: str
    at: float
    state: str
    since: float  # when the state began
    problem: str = ""
    lag_records: int = 0
    lag_seconds: float = 0.0
    headroom_seconds: float | None = None  # as in TopicLag
    copied_rate: float | None = None
    produced_rate: float | None = None
    left_seconds: float | None = None  # until the flow is up to date, at this rate
    topics: tuple[TopicLag, ...] = ()
    lagging_topics: int = 0
    losses: int = 0
    warnings: tuple[str, ...] = ()
    health: str = ""
    word: str = ""  # as of Verdict
    verdict: str = ""
    next_step: str = ""
    run: Mapping[str, Any] | None = field(default=None, hash=False)
    outage_seconds: float | None = None  # the length of an outage that has just ended
    moved_at: float | None = None

    def document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "moved_at"}


def frame(look: Look, before: FlowFrame | None = None, earlier: Look | None = None) -> FlowFrame:
    """What to show after `look`. `before`: the frame that is shown now; `earlier`: the last look that did not fail."""
    health = look.health
    if look.problem:  # older numbers are not shown: they may be wrong now
        since = before.since if before is not None and before.state == UNREACHABLE else look.began
        return FlowFrame(health.flow, look.at, UNREACHABLE, since, look.problem, run=health.newest_run, losses=health.losses_total)
    copied, produced = _rates(look, earlier)
    moved_at = look.at if copied else before.moved_at if before is not None else None
    lag, state = health.lag, _state(health, look.at, moved_at)
    lags = {topic: lag_of(entries) for topic, entries in grouped((entry.topic, entry) for entry in health.counted).items()}
    topics = [TopicLag(topic, found.records, found.seconds, _headroom(found)) for topic, found in lags.items() if found.records]
    topics.sort(key=lambda entry: (-entry.records, entry.topic))
    verdict = verdict_of(health, look.at)
    return FlowFrame(
        health.flow,
        look.at,
        state,
        before.since if before is not None and before.state == state else look.at,
        lag_records=lag.records,
        lag_seconds=lag.seconds,
        headroom_seconds=_headroom(lag),
        copied_rate=copied,
        produced_rate=produced,
        left_seconds=lag.records / copied if copied and lag.records else None,
        topics=tuple(topics[:TOPICS_SHOWN]),
        lagging_topics=len(topics),
        losses=health.losses_total,
        warnings=tuple(_warnings(health, verdict)),
        health=verdict.health.value,
        word=verdict.word,
        verdict=str(verdict),
        next_step=verdict.next_step,
        run=health.newest_run,
        outage_seconds=_outage(look, state, before),
        moved_at=moved_at,
    )


def _warnings(health: FlowHealth, verdict: Verdict) -> Iterator[str]:
    """What the first line does not say: it has the first reason."""
    yield from (reason.text for reason in verdict.reasons[1:])
    if unread := health.lag.unknown_ages:
        yield f"headroom is unknown for {count_of(unread, 'partition')}: Ferry could not read the first uncopied record"
    if health.gone is not None:
        yield told_gone(health.gone)


def _state(health: FlowHealth, now: float, moved_at: float | None) -> str:
    """How the flow stands. `moved_at`: when it last copied."""
    lag = health.lag
    on_time = not lag.records or 0 <= lag.seconds <= LATE_SECONDS
    if on_time and health.following is not None and now < parse_time(health.following["until"]).timestamp():
        return "following"
    if moved_at is not None and now - moved_at <= MOVED_SECONDS and lag.records > 0:
        return "copying"
    return "behind" if lag.records else "up to date"


def _outage(look: Look, state: str, before: FlowFrame | None) -> float | None:
    if before is not None and before.state == UNREACHABLE:
        return look.at - before.since
    recent = before is not None and before.state == state and look.at - before.since < OUTAGE_SHOWN_SECONDS
    return before.outage_seconds if before is not None and recent else None


def _headroom(lag: Lag) -> float | None:
    """Headroom for people: UNKNOWN when none could be read, and never below 0: the source may drop overdue records any time."""
    if lag.headroom_seconds is None:
        return UNKNOWN if lag.unknown_ages else None
    return max(0.0, lag.headroom_seconds)


def _rates(look: Look, earlier: Look | None) -> tuple[float | None, float | None]:
    """Records/s since `earlier`: how many were copied, and how many became visible at the source."""
    if earlier is None or look.at <= earlier.at:
        return None, None
    then = {(entry.topic, entry.partition): entry for entry in earlier.health.counted}
    pairs = [(then[key], entry) for entry in look.health.counted if (key := (entry.topic, entry.partition)) in then]
    seconds = look.at - earlier.at
    copied = sum(max(0, now.position - old.position) for old, now in pairs if now.series == old.series)  # a seed copies nothing
    produced = sum(max(0, now.end - old.end) for old, now in pairs)
    return copied / seconds, produced / seconds


class FlowWatcher:
    """Watches one flow; `frame`: what is known now."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._whole_at = float("-inf")
        self._whole = FlowHealth(flow.name)
        self._earlier: Look | None = None
        self.frame: FlowFrame | None = None

    def look(self) -> FlowFrame:
        began = clock.time()
        try:
            with open_flow(self._flow) as opened:
                if clock.monotonic() - self._whole_at >= WHOLE_SECONDS:
                    health = self._whole = flow_status(opened)
                    self._whole_at = clock.monotonic()
                else:
                    quick = status_after_run(opened)
                    health = replace(self._whole, **{name: getattr(quick, name) for name in QUICK})
                    deadline = (entry for entry in self._whole.broken if not entry.topic)  # only a whole look asks for the runs
                    health = replace(health, broken=(*deadline, *quick.broken))
        except FerryError as refusal:
            look = Look(clock.time(), self._whole, refusal.named, began)
        else:
            look = Look(clock.time(), health)
        self.frame = frame(look, self.frame, self._earlier)
        if not look.problem:
            self._earlier = look
        return self.frame


class Watcher:
    """Watches all flows, each every `interval` seconds; a context manager."""

    def __init__(self, flows: tuple[Flow, ...], interval: float) -> None:
        self._flows = [FlowWatcher(flow) for flow in flows]
        self._interval = interval
        self._stop = clock.Event()
        self.problem: BaseException | None = None

    def __enter__(self) -> Self:
        for place, entry in enumerate(self._flows):
            clock.Thread(target=self._run, args=(entry,), name=f"ferry-watch-{place}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    @property
    def frames(self) -> tuple[FlowFrame, ...]:
        """What is known now of each flow that was read at least once."""
        return tuple(entry.frame for entry in self._flows if entry.frame is not None)

    def _run(self, entry: FlowWatcher) -> None:
        try:
            while not self._stop.is_set():
                began = clock.monotonic()
                entry.look()
                self._stop.wait(max(0.0, began + self._interval - clock.monotonic()))
        except BaseException as problem:  # noqa: BLE001 - the caller raises it
            self.problem = problem
