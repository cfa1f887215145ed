"""Checks of several properties of a flow at once: what MM2 refuses when it validates its connectors, and what Ferry does otherwise.

MirrorSourceConfig.validate and MirrorSourceConnector.validate give the errors. MirrorCheckpointConfig.validate refuses the checkpoint
connector alone, while MM2's dedicated mode logs that and runs the others: so here that connector's work is off, and nothing is refused.

Message handlers and assignment listeners are imported here, so that a name that leads nowhere is a problem of the file and not of a run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ferry.config.problems import Problems
from ferry.config.properties import Entry
from ferry.config.settings import CALLBACK, CALLBACK_ARGS, HANDLER, HANDLER_ARGS, LISTENER, LISTENER_ARGS
from ferry.config.sources import Setting
from ferry.errors import ConfigError
from ferry.handling.loading import check_handler, check_listener

_EMIT_SYNCS = "emit.offset-syncs.enabled"
_SYNCS_TOPIC = ("offset-syncs.topic.location", "offset-syncs.topic.replication.factor")
_REROUTE = "ferry.handler.reroute"


@dataclass(frozen=True)
class Combinations:
    """Checks one flow. `value` gives a property's effective value, `entry` where it stands in the file (None: nowhere).

    `consumer`: the effective settings of the source's consumer.
    """

    value: Callable[[str], Any]
    entry: Callable[[str], Entry | None]
    consumer: Iterable[Setting]
    problems: Problems

    def check(self) -> None:
        """Report what is wrong, and what Ferry does otherwise than MM2."""
        self._check_exactly_once()
        self._check_offset_syncs()
        self._check_group_offsets()
        self._check_handling()
        self._check_callback_arguments()

    def _check_exactly_once(self) -> None:
        required = self.entry("exactly.once.support")
        if required is None or self.value("exactly.once.support") != "required":
            return
        off = self.entry("transaction.producer")
        if off is not None and not self.value("transaction.producer"):
            self.problems.add(f"is false, but {required.key} is required: change one", off)
        isolation = next((setting for setting in self.consumer if setting.name == "isolation.level"), None)
        if isolation is None or isolation.value.reveal().strip().lower() != "read_committed":
            self.problems.add(
                "is required, which MM2 refuses without isolation.level=read_committed of the source's consumer: add "
                "<source>.consumer.isolation.level=read_committed, or remove this key (Ferry reads committed records in any case)",
                required,
            )

    def _check_offset_syncs(self) -> None:
        emit = self.entry(_EMIT_SYNCS)
        if emit is None or self.value(_EMIT_SYNCS):
            return
        for name in _SYNCS_TOPIC:
            other = self.entry(name)
            if other is not None:
                self.problems.add(f"is false, but {other.key} is set, which MM2 refuses: remove one", emit)
        if self.value("emit.checkpoints.enabled"):
            self.problems.warn(
                "switches offset syncs off. MM2 then writes no checkpoints either. Ferry still writes them, because it needs no offset "
                "syncs for them: emit.checkpoints.enabled=false switches them off",
                emit,
            )

    def _check_group_offsets(self) -> None:
        groups = self.entry("sync.group.offsets.enabled")
        if groups is not None and self.value("sync.group.offsets.enabled") and not self.value("emit.checkpoints.enabled"):
            self.problems.warn(
                "is true without checkpoints. MM2 then syncs no group offsets. Ferry syncs them, because it needs no checkpoints for that",
                groups,
            )

    def _check_handling(self) -> None:
        for key, args_key, check in ((HANDLER, HANDLER_ARGS, check_handler), (LISTENER, LISTENER_ARGS, check_listener)):
            found, args, name = self.entry(key), self.entry(args_key), self.value(key)
            if name is not None and found is not None:
                try:
                    check(name, self.value(args_key))
                except ConfigError as problem:
                    self.problems.add(str(problem), found)
            if name is None and args is not None:
                self.problems.warn(f"has no effect without {key}", args)
        reroute = self.entry(_REROUTE)
        if reroute is not None and self.value(_REROUTE):
            what = "is not supported: a message handler can change everything of a record except its topic and partition; remove it"
            self.problems.add(what, reroute)

    def _check_callback_arguments(self) -> None:
        given = self.entry(CALLBACK_ARGS)
        unknown = sorted(set(self.value(CALLBACK_ARGS) or {}) - set(self.value(CALLBACK)))
        if unknown and given is not None:
            self.problems.add(f"gives arguments to {', '.join(unknown)}, which {CALLBACK} does not name", given)
