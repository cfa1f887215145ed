"""Records of the state topic about failovers: where the flow stands, which groups were taken, where the target's topics ended.

Whoever does not know of a failover would write groups back to where they were: an older Ferry must not overlook these, so they have a
version of their own, which it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ferry.wire.documents import number, text

RECOVERY_VERSION = 2
KINDS = frozenset({"recovery", "taken", "cut"})


@dataclass(frozen=True)
class RecoveryRecord:
    """Where the flow stands between its two sides: `stage` is a ferry.ledger.stages.Stage.

    `recovery` names the failover or cut-over that this is about; its failback belongs to it. `phase` names the movement of groups that is
    under way, or was last. `step` is the last one that was finished, `at` (ms) when. `since` (ms): when groups began to move to the target.
    `source_cluster`: the source's cluster id where it could be asked.
    """

    flow: str
    recovery: str
    phase: str
    stage: str
    step: str
    at: int
    since: int
    run_id: str = ""
    confirmed_by: str = ""
    source_cluster: str = ""


@dataclass(frozen=True)
class GroupTaken:
    """A phase of a recovery is about to write the group, or has (`done`). From here on it may have moved on by itself.

    `back`: (topic, partition, offset before) where it was to go back.
    """

    group: str
    phase: str
    back: tuple[tuple[str, int, int], ...] = ()
    done: bool = False


@dataclass(frozen=True)
class CutEnds:
    """Where a topic of the target ended when the flow was failed over: the flow in the other direction begins there. By partition.

    `topic_id`: of the topic then; empty for clusters without topic ids. One that was created again since has other offsets.
    """

    topic: str
    recovery: str
    ends: tuple[int, ...]
    topic_id: str = ""


RecoveryEntry = RecoveryRecord | GroupTaken | CutEnds


def recovery_fields(entry: RecoveryEntry) -> tuple[dict[str, object], dict[str, object]]:
    """Key and value as JSON objects, the version apart."""
    match entry:
        case RecoveryRecord():
            value = {name: getattr(entry, name) for name in ("recovery", "phase", "stage", "step", "at", "since")}
            return {"recovery": entry.flow}, {**value, "run": entry.run_id, "by": entry.confirmed_by, "source": entry.source_cluster}
        case GroupTaken():
            return {"taken": entry.group}, {"phase": entry.phase, "back": [list(place) for place in entry.back], "done": entry.done}
        case CutEnds():
            return {"cut": entry.topic}, {"recovery": entry.recovery, "ends": list(entry.ends), "id": entry.topic_id}


def read_recovery_fields(key: dict[str, Any], value: dict[str, Any]) -> RecoveryEntry:
    """The inverse; ValueError, KeyError or TypeError for anything else."""
    if "recovery" in key:
        return RecoveryRecord(
            text(key["recovery"]),
            text(value["recovery"]),
            text(value["phase"]),
            text(value["stage"]),
            text(value["step"]),
            number(value["at"]),
            number(value["since"]),
            text(value.get("run", "")),
            text(value.get("by", "")),
            text(value.get("source", "")),
        )
    if "taken" in key:
        back = tuple((text(topic), number(partition), number(offset)) for topic, partition, offset in _listed(value["back"]))
        return GroupTaken(text(key["taken"]), text(value["phase"]), back, bool(value["done"]))
    return CutEnds(text(key["cut"]), text(value["recovery"]), tuple(map(number, _listed(value["ends"]))), text(value.get("id", "")))


def _listed(value: object) -> Iterable[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40} is no list")
    return value
