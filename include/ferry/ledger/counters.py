"""The numbers that a copy counts about its records: for a batch, a receipt, or a partition in a run's report, and their sums."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, attrgetter, sub
from typing import Any, NamedTuple, Self

from ferry.wire.strict_json import number

_ALWAYS = ("records", "bytes", "transactions", "forwarded", "reframed")


@dataclass(frozen=True, slots=True)
class MinMeanMax:
    """Least, mean and greatest of `count` values (at least one) in ms, without keeping the values: for delays and timestamps."""

    least: int
    mean: float
    greatest: int
    count: int

    def __add__(self, other: "MinMeanMax") -> "MinMeanMax":
        count = self.count + other.count
        mean = (self.mean * self.count + other.mean * other.count) / count
        return MinMeanMax(min(self.least, other.least), mean, max(self.greatest, other.greatest), count)

    def until(self, moment: int) -> "MinMeanMax":
        """For timestamps: their ages at `moment`."""
        return MinMeanMax(moment - self.greatest, moment - self.mean, moment - self.least, self.count)

    def parts(self) -> list[float]:
        """For a record of the ledger; the inverse of `of_parts`."""
        return [self.least, round(self.mean, 1), self.greatest, self.count]

    @classmethod
    def of_parts(cls, parts: list[float]) -> Self:
        """ValueError unless there are four numbers."""
        least, mean, greatest, count = parts
        return cls(int(least), float(mean), int(greatest), int(count))


class Counters(NamedTuple):
    """Numbers that add up, then delays; `Counters()` is zero. A message handler got `records + dropped - added` records of the source."""

    # On the target; `bytes` as stored there.
    records: int = 0
    bytes: int = 0
    transactions: int = 0
    # Batches that were forwarded, reframed or handled.
    forwarded: int = 0
    reframed: int = 0
    handled: int = 0
    dropped: int = 0  # source records that have no record on the target, because a message handler dropped them
    added: int = 0  # records of a message handler beyond one for each source record
    from_target: int = 0  # source offsets left out, because the flow in the other direction had brought their records from the target
    rerouted: int = 0  # records that a message handler sent to other topics of the target. Their source records count as dropped
    # How old records were when the target had them, by the first and the greatest timestamp of each batch. None: none has a timestamp.
    record_age_ms: MinMeanMax | None = None
    # How old records were when their transaction was about to be committed. Otherwise like `record_age_ms`.
    replication_latency_ms: MinMeanMax | None = None

    def __add__(self, other: "Counters") -> "Counters":  # type: ignore[override]  # sums, where other tuples are put together
        record_age = _of_both(self.record_age_ms, other.record_age_ms)
        latency = _of_both(self.replication_latency_ms, other.replication_latency_ms)
        return Counters._make((*map(add, _numbers(self), _numbers(other)), record_age, latency))

    def since(self, before: "Counters") -> "Counters":
        """The numbers minus those of `before`; the delays stay as they are."""
        return self._replace(**dict(zip(_NUMBERS, map(sub, _numbers(self), _numbers(before)), strict=True)))

    @property
    def by_handler(self) -> bool:
        return bool(self.handled or self.dropped or self.added)

    def document(self) -> dict[str, Any]:
        """Fields of a receipt's value. It leaves out the rarer ones if they have their usual value."""
        always = {name: getattr(self, name) for name in _ALWAYS}
        rare: dict[str, Any] = {}
        if self.by_handler:
            rare["handled"] = [self.handled, self.dropped, self.added]
        if self.from_target:
            rare["from_target"] = self.from_target
        if self.rerouted:
            rare["rerouted"] = self.rerouted
        if self.record_age_ms is not None and self.replication_latency_ms is not None:
            rare["delays"] = [self.record_age_ms.parts(), self.replication_latency_ms.parts()]
        return always | rare

    @classmethod
    def of_document(cls, value: dict[str, Any]) -> "Counters":
        """The inverse of `document`. KeyError, TypeError or ValueError for anything else."""
        always = {name: number(value[name]) for name in _ALWAYS}
        handled = dict(zip(("handled", "dropped", "added"), map(number, value.get("handled", (0, 0, 0))), strict=True))
        record_age, latency = (MinMeanMax.of_parts(parts) for parts in value["delays"]) if "delays" in value else (None, None)
        rare = {name: number(value.get(name, 0)) for name in ("from_target", "rerouted")}
        return cls(**always, **handled, **rare, record_age_ms=record_age, replication_latency_ms=latency)


_NUMBERS = tuple(name for name in Counters._fields if not name.endswith("_ms"))  # all fields but the delays, which come last
_numbers: Callable[[Counters], tuple[int, ...]] = attrgetter(*_NUMBERS)
ZERO = Counters()
ONE_TRANSACTION = Counters(transactions=1)


def _of_both(first: MinMeanMax | None, second: MinMeanMax | None) -> MinMeanMax | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second
