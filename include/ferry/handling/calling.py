"""Calls a message handler for the records of one partition, and checks what it returns.

Errors of the handler are reported by type and place, never with their text: the text of a KeyError is the key, of a ValueError often the
value.
"""

import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

from ferry.errors import HandlerFailed, PartitionError
from ferry.handling.interface import Record
from ferry.handling.loading import Handle


class HandlerStopped(Exception):
    """The handler failed at the record with upstream offset `offset`. The text holds nothing of the record."""

    def __init__(self, offset: int, problem: str, error: type[PartitionError] = HandlerFailed) -> None:
        super().__init__(f"offset {offset}: {problem}")
        self.offset, self.error = offset, error


class PartitionHandling:
    """`reroute`: topics of the target that the handler may choose instead, with their numbers of partitions."""

    def __init__(self, handle: Handle, topic: str, partition: int, reroute: Mapping[str, int] | None = None) -> None:
        self._handle, self._reroute = handle, reroute or {}
        self.topic = topic
        self.partition = partition

    def __call__(self, record: Record) -> list[Record]:
        """The outputs for one record. HandlerStopped."""
        try:
            returned = self._handle(record)
            outputs = list(returned) if isinstance(returned, Iterable) else None  # here the body of a generator runs
        except HandlerStopped:  # of Ferry's own
            raise
        except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
            raise HandlerStopped(record.offset, f"the handler {described(problem)}") from None
        if outputs is None:
            what = f"the handler returned a {type(returned).__name__}: return a list of records, an empty one to drop the record"
            raise HandlerStopped(record.offset, what)
        for output in outputs:
            if not isinstance(output, Record):
                raise HandlerStopped(record.offset, f"the handler returned a {type(output).__name__} among its records")
        if outputs:
            self._check_place(record, outputs)
        return outputs

    def chosen(self, output: Record) -> tuple[str, int] | None:
        """The topic and partition of the target that the handler chose; None: those of the record."""
        place = output.topic, output.partition
        return None if place == (self.topic, self.partition) else place

    def _check_place(self, record: Record, outputs: list[Record]) -> None:
        if len({(output.topic, output.partition) for output in outputs}) > 1:
            what = "the handler returned records for several partitions: all that it returns for one record go to one partition"
            raise HandlerStopped(record.offset, what)
        place = self.chosen(outputs[0])
        if place is None:
            return
        topic, partition = place
        if topic not in self._reroute:
            what = "the handler changed the topic or partition of a record: it may choose only topics that ferry.handler.reroute names"
            raise HandlerStopped(record.offset, what)
        if type(partition) is not int or not 0 <= partition < self._reroute[topic]:
            what = f"the handler chose a partition that topic {topic} of the target does not have: it has {self._reroute[topic]}"
            raise HandlerStopped(record.offset, what)


def described(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"raised {type(problem).__name__}{place}"
