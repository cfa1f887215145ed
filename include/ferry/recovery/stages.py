"""The stages of a failover, failback and cut-over, in their order (pure).

The commands carry the stages out one after the other, and a dry run prints them. In Airflow, each stage has a task or two. Every stage can
be repeated. No group is written before a person has confirmed the plan.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Stage(StrEnum):
    """One stage, in words for people."""

    CHECK = "check both clusters"
    COPY_ONCE_MORE = "copy once more"
    COPY_TAIL = "copy what is left"
    COPY_BACK = "copy back"
    COPY_AHEAD = "copy"
    ASK_STOPPED = "ask whether producers and consumers are stopped"
    DRAIN = "copy the rest"
    COMPARE = "compare both sides"
    PLAN = "plan where each group continues"
    CONFIRM = "ask whether the groups shall be written"
    WRITE = "write the groups"

    @property
    def in_dry_run(self) -> bool:
        """Whether a dry run and a rehearsal carry it out too. They only read."""
        return self in {Stage.CHECK, Stage.PLAN}


_TO_EQUAL_SIDES = (Stage.ASK_STOPPED, Stage.DRAIN, Stage.COMPARE)
_GROUPS = (Stage.PLAN, Stage.CONFIRM, Stage.WRITE)
_STAGES: Mapping[str, tuple[Stage, ...]] = {
    "failover": (Stage.CHECK, Stage.COPY_ONCE_MORE, *_GROUPS),
    "failback": (Stage.CHECK, Stage.COPY_TAIL, Stage.COPY_BACK, *_TO_EQUAL_SIDES, *_GROUPS),
    "cutover": (Stage.CHECK, Stage.COPY_AHEAD, *_TO_EQUAL_SIDES, *_GROUPS),
}


def stages(command: str, without: Collection[Stage] = ()) -> tuple[Stage, ...]:
    """The stages of this command. `without`: those that a person does not want."""
    return tuple(stage for stage in _STAGES[command] if stage not in without)
