"""Scenarios by hand, by the name of the mutant that they find: what harms it needs too many things at a time for the seeds of a series.

Unchanged Ferry passes all of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from tests.simulation.faults import Act, Fault
from tests.simulation.releases import Release
from tests.simulation.scenario import OLD, Kind, Round, Scenario
from tests.simulation.writing import Write


def _writes(count: int, records: int, partitions: int) -> tuple[Write, ...]:
    return tuple(Write(number % partitions, records) for number in range(count))


def _late_commit(seed: int, produce: int) -> Scenario:
    """A commit is read late: in the middle of the next transaction, which has the same epoch. Then more records of that one come."""
    faults = (Fault(Act.STRAY, "run-0", "EndTxn commit lane", 1), Fault(Act.LATE, "run-0", "Produce lane", produce))
    rounds = (Round(0, Kind.BOUNDED, _writes(24, 3, 1), lanes=1),)
    return Scenario(seed, rounds, faults, partitions=1, transaction_version=1, small=True, narrow=True)


def _late_abort(seed: int, release: Release) -> Scenario:
    """Before KIP-890 an abort keeps the epoch. A lane that recovers sends one, gets no answer, and sends it again. The first of the two is
    read late: in the middle of the next transaction."""
    faults = (Fault(Act.UNANSWERED, "run-0", "TxnOffsetCommit", 1), Fault(Act.STRAY, "run-0", "EndTxn abort lane", 3))
    rounds = (Round(0, Kind.BOUNDED, _writes(8, 4, 1)),)
    return Scenario(seed, rounds, faults, partitions=1, transaction_version=1, release=release, small=True)


def _late_positions(seed: int) -> Scenario:
    """Positions are read late, in a transaction that has none for the same partition. The broker does not ask the coordinator."""
    rounds = (Round(0, Kind.BOUNDED, _writes(16, 3, 2), lanes=1),)
    faults = (Fault(Act.STRAY, "run-0", "TxnOffsetCommit", 1),)
    return Scenario(seed, rounds, faults, transaction_version=1, release=OLD, small=True, narrow=True)


def _taken_back_late(seed: int, refresh: int, init: int) -> Scenario:
    """A run loses its only lane, proves that it holds the flow, and stands still. Meanwhile another run gives the partitions to two lanes,
    and stands still too. The older run goes on first."""
    faults = (
        Fault(Act.UNANSWERED, "run-0", "Metadata", refresh),  # of its lane, which ends
        Fault(Act.FREEZE, "run-0", "InitProducerId lane", init, seconds=3.0),
        Fault(Act.FREEZE, "run-1", "Produce lane", 1, seconds=6.0),
    )
    rounds = (Round(0, Kind.BOUNDED, _writes(30, 3, 2), lanes=1), Round(1, Kind.BOUNDED, _writes(4, 2, 2), lanes=2))
    return Scenario(seed, rounds, faults, partitions=2, small=True)


def _lagging(produce: int, place: int) -> Scenario:
    """A leader has a batch, and says so only when the next batch has come too."""
    fault = Fault(Act.LAG, "run-0", "Produce lane", produce, seconds=24.0, place=place)
    rounds = (Round(0, Kind.BOUNDED, _writes(12, 3, 2), lanes=1),)
    return Scenario(0, rounds, (fault,), target_brokers=3, narrow=True)


def _killed(request: str, nth: int) -> Scenario:
    """Without transactions, a run is killed when a segment counts in part."""
    rounds = (Round(0, Kind.BOUNDED, _writes(8, 3, 1), lanes=1), Round(1, Kind.BOUNDED, _writes(2, 2, 1), lanes=1))
    return Scenario(1, rounds, (Fault(Act.KILL, "run-0", request, nth),), partitions=1, exactly_once=False, small=True)


def _other_commits(seed: int, fault: Fault, kind: Kind, beside: float) -> Scenario:
    """A run of one flow reads what the other flow has written while this one commits."""
    writes = tuple(replace(one, back=True) for one in _writes(6, 3, 2))
    rounds = (
        Round(0, Kind.BOUNDED, writes, beside=beside, back=True),
        Round(1, kind, _writes(2, 2, 2), seconds=4.0),
    )
    return Scenario(seed, rounds, (fault,), source_brokers=3, both=True)


def _unanswered(act: Act) -> Scenario:
    """The log holds a batch, and the lane does not learn it."""
    rounds = (Round(0, Kind.BOUNDED, _writes(6, 3, 2), lanes=1), Round(1, Kind.BOUNDED, _writes(2, 2, 2)))
    return Scenario(0, rounds, (Fault(act, "run-0", "Produce lane", 3),), partitions=2, small=True, target_brokers=3)


def _cut_and_grown() -> Scenario:
    """A lane that follows has copied two records when an unclean election removes them; then three others come."""
    later = (Write(0, 2), Write(0, 3), Write(0, 1))
    rounds = (Round(0, Kind.FOLLOWS, (Write(0, 1),), later, pause=2.0, seconds=9.0),)
    return Scenario(1, rounds, (Fault(Act.UNCLEAN, "run-0", "", 1, 3.0, "source"),), partitions=1, source_brokers=3)


def _cut_and_grown_to_the_position(lost: int) -> Scenario:
    """What an unclean election removes is replaced by as many other records, and the log ends at the position again."""
    later = (Write(0, lost), Write(0, 1), Write(0, 1))
    rounds = (Round(0, Kind.FOLLOWS, (Write(0, 2),), later, pause=0.1, seconds=3.0),)
    fault = Fault(Act.UNCLEAN, "run-0", "EndTxn commit lane", 1, 0.15, "source", 700)
    return Scenario(1, rounds, (fault,), partitions=1, source_brokers=3, small=True, restarts=True)


def _cut_after_another_election() -> Scenario:
    """A broker fails, so run 1 copies records of two leader epochs in one transaction. Then those of the later epoch are gone."""
    faults = (
        Fault(Act.UNCLEAN, "run-0", "", 1, seconds=1.5, cluster="source"),
        Fault(Act.KILL, "run-0", "Produce run", 1),
        Fault(Act.FAIL, "run-1", "OffsetFetch", 2, seconds=0.3, cluster="source", place=1),
    )
    rounds = (Round(0, Kind.BOUNDED, (Write(0, 3),)), Round(1, Kind.FOLLOWS, (), later=(Write(0, 2),), pause=0.2, seconds=2.6))
    return Scenario(1, rounds, faults, partitions=1, source_brokers=3)


def _cut_off(seed: int, request: str, place: int, kind: Kind) -> Scenario:
    """A leader is replaced while the first run copies, and does not know it. Ferry's runs may ask it for long."""
    fault = Fault(Act.CUT_OFF, "run-0", request, 1, seconds=200.0, place=place)
    rounds = (Round(0, Kind.BOUNDED, _writes(4, 3, 2)), Round(1, kind, _writes(1, 1, 2)))
    return Scenario(seed, rounds, (fault,), target_brokers=3)


def _followed(seed: int, later: tuple[Write, ...], pause: float, *faults: Fault, **settings: Any) -> Scenario:
    """A run that follows, and what is written meanwhile. From the second commit of a partition on, receipts leave with the records."""
    one = Round(0, Kind.FOLLOWS, (Write(0, 1),), later, pause=pause, seconds=3.0, lanes=1)
    return Scenario(seed, (one,), faults, partitions=1, **settings)


def _others_write(seed: int) -> Scenario:
    """Somebody else writes to the remote topic too, so the lane's records are not where it predicts them."""
    later = tuple(Write(0, 1 + number % 2, back=number % 3 == 2) for number in range(13))
    return _followed(seed, later, 0.2)


def _not_accepted(commit: int) -> Scenario:
    """A leader does not take a batch that a receipt names, and after the commit the run is killed."""
    faults = (
        Fault(Act.UNREADY, "run-0", "Produce lane", 2 * commit - 1),
        Fault(Act.KILL_AFTER, "run-0", "EndTxn commit lane", commit),
    )
    return _followed(1, tuple(Write(0, 2) for _ in range(8)), 0.25, *faults)


# Of the records of a transaction, those of the next one arrive while it is committed.
_PAIRS = tuple(Write(0, 1, commits=True, seconds=0.3 * (number // 3)) for number in range(24))
_OTHERS_WRITE = tuple(map(_others_write, range(1, 4)))
_REQUESTS = ("Produce lane", "InitProducerId lane", "EndTxn commit run")
_REPLACED = tuple(_cut_off(seed, request, 2, Kind.BOUNDED) for seed, request in product(range(1, 8), _REQUESTS))
_TAKEN_BACK = tuple(_taken_back_late(1, refresh, init) for refresh, init in product(range(18, 22), (4, 5)))
SCENES = {
    "no-epoch-after-an-abort": (_late_abort(3, OLD), _late_abort(59, (4, 3))),
    "wrong-prediction-stays": _OTHERS_WRITE,
    "correction-unwritten": _OTHERS_WRITE,
    "other-key": _OTHERS_WRITE,
    "commit-before-receipts": tuple(_followed(seed, tuple(Write(0, 1) for _ in range(12)), 0.2, target_brokers=3) for seed in range(1, 5)),
    "named-and-not-accepted": tuple(map(_not_accepted, (3, 4, 5))),
    "news-before-the-commit": tuple(_followed(seed, _PAIRS, pause) for seed, pause in product(range(1, 3), (0.001, 0.002, 0.003))),
    "commit-sent-again": tuple(_late_commit(seed, produce) for seed, produce in product(range(10), range(4, 9))),
    "positions-sent-again": tuple(map(_late_positions, range(6))),
    "accepted-after-refused": tuple(_lagging(produce, place) for produce, place in product((2, 3), (0, 1, 3))),
    "heads-before-receipts": tuple(_killed("Produce ledger", nth) for nth in range(2, 7)),
    "positions-before-heads": tuple(_killed("Produce state", nth) for nth in range(2, 9)),
    "beyond-the-end-forgotten": (_other_commits(1, Fault(Act.FREEZE, "run-0", "EndTxn commit lane", 1, seconds=1.5), Kind.FOLLOWS, 0.5),),
    "committed-receipts": tuple(
        _other_commits(1, Fault(Act.LAG, "run-0", "EndTxn commit lane", 1, 3.0, "source", place), Kind.BOUNDED, 0.5) for place in range(12)
    ),
    "lane-past-truncation": (_cut_and_grown(),),
    "no-proof-after-taking": _TAKEN_BACK,
    "no-comparison": _TAKEN_BACK,
    "lost-is-refused": (_unanswered(Act.UNANSWERED), _unanswered(Act.CRASH)),
    "rewritten-unseen": tuple(map(_cut_and_grown_to_the_position, (1, 2, 3))),
    "receipt-of-epochs": (_cut_after_another_election(),),
    "one-broker": _REPLACED,
    "lower-epoch": _REPLACED,
    "hanging-at-old-leader": _REPLACED,
    "no-mark-in-ledger": tuple(_cut_off(seed, request, 2, Kind.BACKFILL) for seed, request in product(range(7), _REQUESTS)),
}
