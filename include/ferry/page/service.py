"""Snapshots of flows, read by reader processes: what the routes of the page ask. For many threads; starts nothing until it is asked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ferry.errors import FerryError
from ferry.page.frames import ReadRequest
from ferry.page.overview import landscape_from
from ferry.page.problem import Problem, problem_of
from ferry.page.readers import Readers
from ferry.page.reads import READS, ReadName
from ferry.page.snapshots import Key, Snapshot, Snapshots

if TYPE_CHECKING:
    from ferry.config import Flow

Outcome = tuple[Snapshot[Any], "Future[Snapshot[Any]] | None"]


class PageService:
    """`resolve` gives a flow by its name, ready to log in; it is called in a thread of the cache, and may raise FerryError."""

    def __init__(self, resolve: Callable[[str], Flow], readers: Readers | None = None) -> None:
        self._resolve = resolve
        self._readers = readers or Readers()
        self._snapshots = Snapshots(self._readers.most)

    def look(self, flow: str, name: ReadName, argument: str = "") -> Outcome:
        """What is known now, and the read that is under way, if there is one."""
        entry = READS[name]
        return self._snapshots.get(Key(flow, name.value, argument), lambda: self._read(flow, name, argument), entry.fresh_seconds)

    def close(self) -> None:
        """End reader processes that are idle."""
        self._readers.close()

    def _read(self, flow: str, name: ReadName, argument: str) -> tuple[Any, Problem | None, int]:
        try:
            request = ReadRequest(name, self._resolve(flow), argument)
        except FerryError as problem:
            return None, problem_of(problem), 0
        data, problem_found, size = self._readers.read(request, READS[name].limit_seconds)
        if data is not None and name is ReadName.LANDSCAPE:
            return landscape_from(data), problem_found, size
        return data, problem_found, size
