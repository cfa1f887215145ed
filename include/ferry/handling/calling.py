"""Calls a message handler for the records of one partition, and checks what it returns.

Errors of the handler are reported by type and place, never with their text: the text of a KeyError is the key, of a ValueError often the
value.
"""

import traceback
from collections.abc import Iterable
from pathlib import Path

from ferry.handling.interface import Record
from ferry.handling.loading import Handle


class HandlerStopped(Exception):
    """The handler failed at the record with upstream offset `offset`. The text holds nothing of the record."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(f"offset {offset}: {problem}")
        self.offset = offset


class PartitionHandling:
    def __init__(self, handle: Handle, topic: str, partition: int) -> None:
        self._handle = handle
        self.topic = topic
        self.partition = partition

    def __call__(self, record: Record) -> list[Record]:
        """The outputs for one record. HandlerStopped."""
        try:
            returned = self._handle(record)
            outputs = list(returned) if isinstance(returned, Iterable) else None  # here the body of a generator runs
        except Exception as problem:  # noqa: BLE001 - the code of users may raise anything
            raise HandlerStopped(record.offset, f"the handler {described(problem)}") from None
        if outputs is None:
            what = f"the handler returned a {type(returned).__name__}: return a list of records, an empty one to drop the record"
            raise HandlerStopped(record.offset, what)
        for output in outputs:
            if not isinstance(output, Record):
                raise HandlerStopped(record.offset, f"the handler returned a {type(output).__name__} among its records")
            if output.topic != record.topic or output.partition != record.partition:
                what = "the handler changed the topic or partition of a record: Ferry keeps both (ferry.handler.reroute)"
                raise HandlerStopped(record.offset, what)
        return outputs


def described(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"raised {type(problem).__name__}{place}"
