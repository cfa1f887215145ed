"""How much memory, open files and threads a process and its descendants take at most, by what they are."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import psutil
from benchmarks.process_tree import kind_of

LOOK_SECONDS = 0.25
MIB = 1 << 20


class Watched:
    """A context manager: looks at a tree of processes until it ends; then `figures`."""

    def __init__(self, pid: int, name: str = "") -> None:
        self._root, self._name = psutil.Process(pid), name
        self._most: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watched", daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def figures(self) -> Mapping[str, float]:
        """The most of each, of the largest process of a kind: `driver MiB`, `driver files`, `driver threads`, …"""
        return dict(self._most)

    def forget(self) -> None:
        """Begin anew."""
        self._most.clear()

    def look(self) -> None:
        """Once."""
        try:
            tree = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in tree:
            try:
                with process.oneshot():
                    kind = self._name or kind_of(process.cmdline())
                    found = {"MiB": process.memory_info().rss / MIB, "files": process.num_fds(), "threads": process.num_threads()}
            except psutil.Error:
                continue
            for what, value in found.items():
                name = f"{kind} {what}"
                self._most[name] = max(self._most.get(name, 0.0), value)

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look()
