"""Records of the state topic about failovers: the flow's stage, which groups were taken, where the target's topics ended.

A Ferry that ignored a failover would move groups back. So these records have a version of their own, which an older Ferry refuses.
"""

from dataclasses import dataclass
from typing import Any

from ferry.wire.documents import read_as

RECOVERY_VERSION = 2
KINDS = frozenset({"recovery", "taken", "cut"})


@dataclass(frozen=True)
class RecoveryRecord:
    """The flow's stage, a ferry.ledger.stages.Stage.

    `recovery`: the name of the failover or cut-over; its failback belongs to it. `phase`: the name of the current or last movement of
    groups. `step`: the last finished step; `at` (ms): when. `since` (ms): when groups began to move to the target. `source_cluster`: the
    source's cluster id, if it answered.
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
    """A phase of a recovery is about to write the group, or has written it (`done`). From then on its consumers may move it.

    `back`: (topic, partition, offset before) of partitions that go back.
    """

    group: str
    phase: str
    back: tuple[tuple[str, int, int], ...] = ()
    done: bool = False


@dataclass(frozen=True)
class CutEnds:
    """Where a topic of the target ended when the flow was failed over, by partition. The flow in the other direction begins there.

    `topic_id`: of the topic then; empty for clusters without topic ids. The ends do not hold for a topic that was created again since.
    """

    topic: str
    recovery: str
    ends: tuple[int, ...]
    topic_id: str = ""


RecoveryEntry = RecoveryRecord | GroupTaken | CutEnds

# What JSON calls some fields. A record may lack them.
_NAMES = {"run_id": "run", "confirmed_by": "by", "source_cluster": "source", "topic_id": "id"}


def recovery_fields(entry: RecoveryEntry) -> tuple[dict[str, object], dict[str, object]]:
    """Key and value as JSON objects, without the version."""
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
        return read_as(RecoveryRecord, {**value, "flow": key["recovery"]}, names=_NAMES, optional=_NAMES)
    if "taken" in key:
        return read_as(GroupTaken, {**value, "group": key["taken"]})
    return read_as(CutEnds, {**value, "topic": key["cut"]}, names=_NAMES, optional=_NAMES)
