"""What happens in one seed: clusters, what is written, which runs begin when, and faults. It is data, drawn from the seed.

A run may begin while earlier ones go on, stand still, or are dead; it may be another try of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from tests.simulation.faults import Fault, drawn_fault
from tests.simulation.releases import Release
from tests.simulation.writing import Write

# Before 3.6 the leader of a partition does not ask the coordinator whether it is in the transaction.
OLD: Release = (2, 8)


class Kind(Enum):
    BOUNDED = "copies what is there"
    BACKFILL = "fills gaps"
    FOLLOWS = "follows for some seconds"


@dataclass(frozen=True)
class Round:
    """`writes` come first. `run`: the number of the run; the same again is another try. `beside`: the next round begins after so many
    seconds although this run goes on; None: it waits for its end. `later`: written while the run goes on, with pauses of `pause`. `back`:
    the run is one of the flow in the other direction."""

    run: int
    kind: Kind
    writes: tuple[Write, ...]
    later: tuple[Write, ...] = ()
    pause: float = 0.0
    seconds: float = 0.0  # that a run follows
    beside: float | None = None
    lanes: int | None = None
    back: bool = False

    def __str__(self) -> str:
        told = f"run {self.run} {self.kind.value.replace('some', f'{self.seconds:.1f}')}"
        waits = "until it ends" if self.beside is None else f"for {self.beside:.3f} s"
        told = f"{told}, in the other direction" if self.back else told
        return f"{sum(one.records for one in self.writes)} records, then {told}; wait {waits}; meanwhile {len(self.later)} more writes"


@dataclass(frozen=True)
class Scenario:
    """`mishaps`: how likely any other message has a mishap."""

    seed: int
    rounds: tuple[Round, ...]
    faults: tuple[Fault, ...]
    partitions: int = 2
    source_brokers: int = 1
    target_brokers: int = 1
    transaction_version: int = 2
    release: Release = (4, 3)  # of the target
    exactly_once: bool = True
    small: bool = False  # small fetches and transactions, so that a run has many
    narrow: bool = False  # a batch holds few records, so that a transaction has many batches
    mishaps: float = 0.0
    goes_on: bool = True  # whether one more run copies more records at the end
    restarts: bool = False  # whether ferry.on.recreate=restart; else a person sets it in the end
    both: bool = False  # whether a flow in the other direction copies the same topic, which keeps its name
    framed: bool = False  # whether connections carry bytes; nothing else differs

    def __str__(self) -> str:
        mode = f"transaction.version {self.transaction_version}" if self.exactly_once else "without transactions"
        mode = f"Kafka {'.'.join(map(str, self.release))}, {mode}"
        brokers = f"{self.source_brokers} and {self.target_brokers} brokers"
        told = (", small transactions", self.small), (", small batches", self.narrow), (", both directions", self.both)
        sizes = [text for text, is_so in told if is_so]
        head = f"seed {self.seed}: {brokers}, {self.partitions} partitions, {mode}{''.join(sizes)}"
        mishaps = [f"  mishaps: {self.mishaps}"] if self.mishaps else []
        return "\n".join([head, *(f"  {one}" for one in self.rounds), *(f"  fault: {one}" for one in self.faults), *mishaps])


def usual(chance: Random, seed: int) -> Scenario:
    """A scenario of a seed, without a theme."""
    partitions, brokers, small = chance.choice((1, 2, 2, 3)), chance.choice((1, 1, 3)), chance.random() < 0.6
    protocol, exactly_once = chance.choice((1, 2)), chance.random() < 0.92
    rounds: list[Round] = []
    run = 0
    for number in range(chance.choice((1, 2, 2, 3))):
        run += number > 0 and chance.random() < 0.85
        lanes = chance.choice((None, 1, 1, 2, 2, 3))
        rounds.append(replace(_round(chance, run, partitions, 6 if small else 3), lanes=lanes))
    names = [f"run-{place}" for place in range(len(rounds))]
    count = chance.choice((0, 1, 1, 2, 2, 3, 4))
    return Scenario(
        seed,
        tuple(rounds),
        tuple(drawn_fault(chance, names, protocol if exactly_once else 0, brokers=brokers > 1) for _ in range(count)),
        partitions=partitions,
        source_brokers=chance.choice((1, 1, 3)) if brokers > 1 else 1,
        target_brokers=brokers,
        transaction_version=protocol,
        release=OLD if protocol == 1 and chance.random() < 0.3 else (4, 3),
        narrow=chance.random() < 0.3,
        exactly_once=exactly_once,
        small=small,
        mishaps=chance.choice((0.0, 0.0, 0.0, 0.01)),
        goes_on=chance.random() < 0.3,
    )


def _round(chance: Random, run: int, partitions: int, most: int) -> Round:
    """`most`: batches that are written first. One of them is committed at once, so that there is something to copy."""
    kind = chance.choices((Kind.BOUNDED, Kind.FOLLOWS, Kind.BACKFILL), (7, 3, 1))[0]
    writes = (Write(chance.randrange(partitions), 1), *(_write(chance, partitions) for _ in range(chance.randrange(most))))
    later = tuple(_write(chance, partitions) for _ in range(chance.randrange(4))) if kind is Kind.FOLLOWS or chance.random() < 0.3 else ()
    if kind is Kind.FOLLOWS:
        seconds = 0.5 + 5.0 * chance.random()
        beside = chance.choice((None, seconds * chance.random()))
        return Round(run, kind, writes, later, seconds * chance.random() / 3, seconds, beside)
    return Round(run, kind, writes, later, 0.1 * chance.random(), 0.0, chance.choice((None, None, 0.3 * chance.random())))


def _write(chance: Random, partitions: int) -> Write:
    commits = chance.choice((None, None, None, True, False))
    seconds = 0.0 if commits is None else chance.choice((0.0, 0.0, 0.3, 3.0)) * chance.random()
    return Write(chance.randrange(partitions), chance.randrange(1, 5), commits, seconds)
