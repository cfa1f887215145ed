"""Verdicts on several properties of a flow at once: what MM2 refuses when it validates its connectors, and what means more here than there.

MirrorSourceConfig.validate and MirrorSourceConnector.validate give the errors. MirrorCheckpointConfig.validate refuses the checkpoint
connector alone, while MM2's dedicated mode logs that and runs the others: so here that connector's work is off, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.sources import Setting

_EMIT_SYNCS = "emit.offset-syncs.enabled"
_SYNCS_TOPIC = ("offset-syncs.topic.location", "offset-syncs.topic.replication.factor")


@dataclass(frozen=True)
class Combinations:
    """Checks one flow. `value` gives a property's effective value, `entry` where it stands (None: nowhere).

    `consumer`: the effective settings of the source's consumer.
    """

    value: Callable[[str], Any]
    entry: Callable[[str], Entry | None]
    consumer: Iterable[Setting]
    problems: Problems

    def check(self) -> None:
        """Report what is wrong, and what is done otherwise than in MM2."""
        self._check_exactly_once()
        self._check_offset_syncs()
        self._check_group_offsets()

    def _check_exactly_once(self) -> None:
        required = self.entry("exactly.once.support")
        if required is None or self.value("exactly.once.support") != "required":
            return
        refused = self.entry("transaction.producer")
        if refused is not None and not self.value("transaction.producer"):
            self.problems.add(f"is false, but {required.key} is required: change one", key=refused.key, line=refused.line)
        isolation = next((setting for setting in self.consumer if setting.name == "isolation.level"), None)
        if isolation is None or isolation.value.reveal().strip().lower() != "read_committed":
            what = (
                "is required, which MM2 refuses without isolation.level=read_committed of the source's consumer: add "
                "<source>.consumer.isolation.level=read_committed, or remove this key (Ferry reads committed records in any case)"
            )
            self.problems.add(what, key=required.key, line=required.line)

    def _check_offset_syncs(self) -> None:
        emit = self.entry(_EMIT_SYNCS)
        if emit is None or self.value(_EMIT_SYNCS):
            return
        for name in _SYNCS_TOPIC:
            other = self.entry(name)
            if other is not None:
                self.problems.add(f"is false, but {other.key} is set, which MM2 refuses: remove one", key=emit.key, line=emit.line)
        if self.value("emit.checkpoints.enabled"):
            what = (
                "switches offset syncs off; MM2 writes no checkpoints then, Ferry does, as it needs no offset syncs for them: "
                "emit.checkpoints.enabled=false switches them off too"
            )
            self.problems.warn(what, key=emit.key, line=emit.line)

    def _check_group_offsets(self) -> None:
        groups = self.entry("sync.group.offsets.enabled")
        if groups is not None and self.value("sync.group.offsets.enabled") and not self.value("emit.checkpoints.enabled"):
            what = "is true without checkpoints; MM2 syncs no group offsets then, Ferry does, as it needs no checkpoints for them"
            self.problems.warn(what, key=groups.key, line=groups.line)
