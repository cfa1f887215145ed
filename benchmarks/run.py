"""`python -m benchmarks.run`: Ferry and MirrorMaker 2 on two fresh brokers of this machine, one after the other in every round.

Writes one JSON file per run to benchmarks/results, prints the tables, and with --docs puts them into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tools.kafka import SandboxCluster

from benchmarks import results
from benchmarks.ferry_side import HERE, MASTER, of_checkout
from benchmarks.flow import Clusters
from benchmarks.results import FERRY, FERRY_BESIDE, FERRY_FOLLOWS, MM2_DEFAULTS, MM2_TUNED, ShapeResult
from benchmarks.rounds import Plan, run_shape
from benchmarks.shapes import SHAPES, choose
from benchmarks.table import caption, markdown, put_between_markers, targets_markdown
from benchmarks.targets import Target, judge

ROOT = Path(__file__).resolve().parent
RESULTS = ROOT / "results"
DOCS = ROOT.parent / "docs" / "benchmarks.md"
WORK = ROOT.parent / ".ferry" / "benchmark"
# A broker as in production: both compilers, G1. The sandbox's own options favour a quick start.
BROKER_JAVA = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
ROUNDS = 3
# Before the brokers start. What else runs takes the same cores.
BUSY_LOAD = 0.5


def main(arguments: list[str] | None = None) -> int:
    """0 when every copier finished every round; 1 when one failed; 2 for bad arguments. Targets are reported, not enforced."""
    options = parse(arguments)
    try:
        shapes = choose(options.shape, options.megabytes, quick=options.quick, backlog=options.backlog)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    if load > BUSY_LOAD:
        _say(f"the machine is busy (load {load:.1f}): the numbers will be too low and uneven")
    found: list[ShapeResult] = []
    # A run that is ended from outside stops its brokers and copiers, and keeps the shapes it has.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with running_clusters(options.source, options.target) as (clusters, directory):
            rounds = 1 if options.quick else options.rounds
            plan = Plan(clusters, directory, rounds, copiers(options), options.master, _say, options.beside or HERE)
            for shape in shapes:
                found.append(run_shape(plan, shape))
                _say(markdown(found[-1:]))
    finally:
        if found:
            _write(found, options, load)
    failures = [failure for result in found for failure in result.failures]
    return 1 if failures else 0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(shape.name for shape in SHAPES)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds per shape (default {ROUNDS})")
    parser.add_argument("--shape", action="append", default=[], help=f"only this shape; may be repeated: {names}")
    parser.add_argument("--megabytes", type=float, help="record values per shape, in 10^6 bytes, instead of each shape's own amount")
    parser.add_argument("--quick", action="store_true", help="one round of a tenth: shows that everything works, measures nothing")
    parser.add_argument(
        "--backlog", action="store_true", help="the comparison of CPU seconds: 2 GB of each batched shape, without MM2's defaults"
    )
    parser.add_argument("--without-defaults", action="store_true", help="leave out the row of MM2's defaults, the slowest one")
    parser.add_argument("--only", choices=(FERRY, MM2_TUNED, MM2_DEFAULTS), help="only this copier: for profiling, not for comparing")
    parser.add_argument("--follow", action="store_true", help="Ferry's runs that follow beside those that end, and no MM2")
    parser.add_argument("--beside", type=of_checkout, help="another checkout, with its .venv: its ferry beside this one's, and no MM2")
    parser.add_argument("--master", default=MASTER, help=f"Spark master of Ferry's runs (default {MASTER}; 'inline' for no Spark)")
    parser.add_argument("--docs", action="store_true", help=f"put the tables into {DOCS.name}")
    parser.add_argument("--source", help="bootstrap server of a running one-broker cluster to use instead of a new one; needs --target")
    parser.add_argument("--target", help="as --source")
    return parser.parse_args(arguments)


def copiers(options: argparse.Namespace) -> tuple[str, ...]:
    """Who is measured."""
    if options.only:
        return (options.only,)
    if options.beside:
        return (FERRY, FERRY_BESIDE)
    if options.follow:
        return (FERRY, FERRY_FOLLOWS)
    return (FERRY, MM2_TUNED) if options.backlog or options.without_defaults else (FERRY, MM2_TUNED, MM2_DEFAULTS)


@contextmanager
def running_clusters(source: str | None = None, target: str | None = None) -> Iterator[tuple[Clusters, Path]]:
    """The two clusters and a directory for configs and logs; clusters of our own are stopped and removed."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    directory = WORK / stamp
    directory.mkdir(parents=True)
    if source and target:
        yield Clusters(source, target), directory
        return
    started: list[SandboxCluster] = []
    try:
        with ThreadPoolExecutor(2) as pool:
            started += pool.map(lambda name: SandboxCluster.start(directory / name, name, java_options=BROKER_JAVA), ("A", "B"))
        yield Clusters(started[0].bootstrap, started[1].bootstrap), directory
    finally:
        for cluster in started:
            cluster.stop()
            shutil.rmtree(cluster.directory / "data", ignore_errors=True)


def _write(found: list[ShapeResult], options: argparse.Namespace, load: float) -> None:
    kind = "backlog" if options.backlog else "shapes"
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = RESULTS / f"{kind}-{stamp}.json"
    judged: list[Target] = [] if options.quick else [target for result in found for target in judge(result)]
    content = results.document(found, {**vars(options), "beside": bool(options.beside)}, load)
    results.write(content, path)
    table = f"{caption(content)}\n\n{markdown(found)}"
    _say("\n".join([table, *([targets_markdown(judged)] if judged else []), f"written to {path}"]))
    if options.docs:
        put_between_markers(DOCS, kind, table)
        put_between_markers(DOCS, f"{kind}-targets", targets_markdown(judged))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
