"""`python -m benchmarks.scale`: 2,000 topics of 5 partitions, copied, then 1 % changed; 2,000 groups synced. Prints a Markdown table.

Real brokers on this machine, `ferry` as a user types it, Spark included. `--docs` puts the table into docs/scale.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scale.landscape import Landscape, commit_groups, landscape, produce
from benchmarks.scale.steps import Step, StepFailed, disk_bytes, measured, properties
from benchmarks.table import put_between_markers

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "scale.md"
WORK = ROOT / ".ferry" / "scale"
FLOW = "A->B"
# On two cores, Spark's start included.
FIRST_COPY_SECONDS, CHANGED_SECONDS, NOTHING_SECONDS, SYNC_SECONDS = 60.0, 10.0, 4.0, 5.0
RECORDS = 3
HEAD = ("step", "wall s", "limit s", "CPU s", "brokers' CPU s", "`ferry` MiB", "driver MiB", "Spark JVM MiB", "worker MiB", "did")


def main(arguments: list[str] | None = None) -> int:
    """0 when all limits were kept; 1 when one was missed or a step failed."""
    options = _parse(arguments)
    load = os.getloadavg()[0]
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    steps: list[Step] = []
    directory = options.directory / stamp
    try:
        with landscape(directory, options.topics, options.width) as found:
            for step in _steps(found, options):
                steps.append(step)
                print(_row(step), flush=True)
    except StepFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    finally:
        if steps:
            text = f"{_caption(options, load)}\n\n{_table(steps)}"
            print(text, flush=True)
            if options.docs:
                put_between_markers(DOCS, "scale", text)
    shutil.rmtree(directory, ignore_errors=True)
    return 0 if all(step.met for step in steps) else 1


def _steps(found: Landscape, options: argparse.Namespace) -> Iterator[Step]:
    run = ("run", str(properties(found)), "--flow", FLOW, "--master", options.master)
    sync = ("sync", run[1], "--flow", FLOW)
    everything = found.partitions
    share = everything[: len(everything) // 100]
    produce(found, everything, RECORDS)
    yield _checked(*measured(found, "first copy", *run, limit=FIRST_COPY_SECONDS), len(everything) * RECORDS)
    produce(found, share, RECORDS)
    yield _checked(*measured(found, "1 % changed", *run, limit=CHANGED_SECONDS), len(share) * RECORDS)
    yield _checked(*measured(found, "nothing changed", *run, limit=NOTHING_SECONDS), 0)
    commit_groups(found, options.groups, RECORDS)
    for name in ("groups", "checkpoints"):
        step, document = measured(found, f"sync {name}", *sync, name, limit=SYNC_SECONDS)
        written = document["syncs"][name]["counts"]["changes"]
        if written < options.groups * found.width:
            raise StepFailed(f"{step.name}: {written} changes for {options.groups} groups")
        yield replace(step, said=f"{written:,} offsets of {options.groups:,} groups")
    step, document = measured(found, "sync groups again", *sync, "groups", limit=SYNC_SECONDS)
    yield replace(step, said=f"{document['syncs']['groups']['counts']['changes']:,} offsets")
    produce(found, share, RECORDS)
    yield _checked(*measured(found, "1 % changed with groups", *run, limit=CHANGED_SECONDS), len(share) * RECORDS)
    used = disk_bytes(found.directory / "A") + disk_bytes(found.directory / "B")
    print(f"disk of both brokers: {used / 2**20:,.0f} MiB", flush=True)


def _checked(step: Step, document: dict[str, object], records: int) -> Step:
    """The run must have copied what was produced (heartbeats apart)."""
    partitions = document["partitions"]
    if not isinstance(partitions, list):
        raise StepFailed(f"{step.name}: no partitions in the report")
    own = [entry for entry in partitions if entry["topic"].startswith("scale-")]
    copied = sum(entry["records"] for entry in own)
    if copied != records or document["failed"]:
        raise StepFailed(f"{step.name}: {copied} records copied, {records} expected; failed: {document['failed']}")
    return replace(step, said=f"{copied:,} records of {len(own):,} partitions")


def _caption(options: argparse.Namespace, load: float) -> str:
    partitions = options.topics * options.width
    what = f"{options.topics:,} topics, {partitions:,} partitions, {options.groups:,} groups"
    return f"{datetime.now(UTC).date()}, {what}; both brokers and Ferry on {os.cpu_count()} cores, load {load:.1f} before."


def _table(steps: list[Step]) -> str:
    return "".join(f"{row}\n" for row in (_line(HEAD), _line(["---"] * len(HEAD)), *map(_row, steps)))


def _row(step: Step) -> str:
    limit = "" if step.limit is None else f"{step.limit:.0f}" if step.met else f"{step.limit:.0f} **missed**"
    memory = [f"{step.peaks_mib.get(kind, 0.0):,.0f}" for kind in ("ferry", "driver", "java", "worker")]
    return _line([step.name, f"{step.seconds:.1f}", limit, f"{step.cpu_seconds:.1f}", f"{step.broker_cpu_seconds:.1f}", *memory, step.said])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--width", type=int, default=5, help="partitions of each topic")
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--directory", type=Path, default=WORK, help="for the brokers' data, configs and logs")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
