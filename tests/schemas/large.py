"""`python -m tests.schemas.large`: how long a sync of 2,000 subjects with three versions takes, at first and when nothing has changed.

Each double of a registry is a process of its own, on the same cores: seconds of the wall are also theirs, those of CPU are only Ferry's.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from tests.schemas.double.server import RegistryDouble
from tests.schemas.registries import Pair, flow_between

from ferry.syncs import schemas

SUBJECTS, ROUNDS = 2_000, 5


def _record(name: str, fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "acme", "fields": [{"name": one, "type": "string"} for one in fields]})


def _fill(double: RegistryDouble) -> None:
    """Each version refers to one subject that all share."""
    money = double.seed("common", _record("Money", "a"))
    references = [{"name": "acme.Money", "subject": "common", "version": money.number}]
    for number in range(SUBJECTS):
        for fields in ("a", "ab", "abc"):
            double.seed(f"topic{number}-value", _record(f"Order{number}", fields), references=references)


def _serve(out: Connection, *, filled: bool) -> None:
    with RegistryDouble() as double:
        if filled:
            _fill(double)
        out.send(double.url)
        out.recv()


@contextmanager
def _double(*, filled: bool) -> Iterator[str]:
    """The URL of a double in another process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(there,), kwargs={"filled": filled}, daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("end")
        process.join()


def _measured(pair: Pair) -> tuple[float, float, int]:
    """Seconds of the wall and of Ferry's CPU, and the requests of one sync."""
    wall, cpu = time.perf_counter(), time.process_time()
    done = pair.sync()
    assert not done.failed, done.failed
    return time.perf_counter() - wall, time.process_time() - cpu, done.counts["requests"]


def main() -> None:
    with _double(filled=True) as source, _double(filled=False) as target, tempfile.TemporaryDirectory() as directory:
        pair = Pair(flow_between(Path(directory), source, target), *cast("list[Any]", [None, None]))
        with patch.object(schemas, "_append", pair.keep):
            first, *others = [_measured(pair) for _ in range(1 + ROUNDS)]
    print("| sync | seconds | of Ferry's CPU | requests |\n|---|---|---|---|")
    print("| at first | {:.1f} | {:.1f} | {:,} |".format(*first))
    medians = [statistics.median(figures) for figures in zip(*others, strict=True)]
    print("| nothing has changed, median of {} | {:.1f} | {:.1f} | {:,.0f} |".format(ROUNDS, *medians))


if __name__ == "__main__":
    main()
