"""`python -m benchmarks.spark_connector`: Spark's own Kafka source and sink beside Ferry, one situation after the other.

Prints a Markdown table; `--docs` puts it into docs/why-not-sparks-connector.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.proxied import ProxiedClusters, proxied_clusters
from benchmarks.run import ROOT, WORK
from benchmarks.spark_connector.copiers import Copier, connector, ferry
from benchmarks.spark_connector.situations import KEPT, PARTITIONS, SITUATIONS, Situation, Stage
from benchmarks.table import put_between_markers
from benchmarks.topics import Topics
from ferry.sandbox.jars import KAFKA_VERSION

DOCS = ROOT.parent / "docs" / "why-not-sparks-connector.md"


def main(arguments: list[str] | None = None) -> int:
    """0: every situation was played."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_connector", description=__doc__)
    parser.add_argument("--only", nargs="*", type=int, help="numbers of rows, from 1")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {DOCS.name}")
    options = parser.parse_args(arguments)
    directory, load = WORK / f"connector-{time.time_ns()}", os.getloadavg()[0]
    rows = ["| | Spark's source and sink | Ferry |", "|---|---|---|"]
    with proxied_clusters(directory) as both:
        for number, situation in enumerate(SITUATIONS, 1):
            if options.only and number not in options.only:
                continue
            told = [_played(both, situation, directory / f"{number}-{side}", side) for side in ("spark", "ferry")]
            rows.append(f"| {situation.title} | {' | '.join(told)} |")
            print(rows[-1], flush=True)
    what = f"PySpark {version('pyspark')}, Kafka {KAFKA_VERSION}, {os.cpu_count()} cores, load {load:.1f} before"
    text = "\n".join((f"{datetime.now(UTC).date()}, {what}.", "", *rows, ""))
    print(text)
    if options.docs:
        put_between_markers(DOCS, "connector", text)
    shutil.rmtree(directory, ignore_errors=True)
    return 0


def _played(both: ProxiedClusters, situation: Situation, directory: Path, side: str) -> str:
    directory.mkdir(parents=True)
    topic, clusters = f"t{time.time_ns()}", both.clusters("source") if situation.far else both.clusters()
    Topics(both.source.cluster.bootstrap).create([topic], PARTITIONS, KEPT)
    copier: Copier
    if side == "spark":
        copier = connector(
            clusters, topic, directory, situation.options, situation.columns, hiccup=situation.hiccup, follows=situation.follows
        )
        Topics(both.target.cluster.bootstrap).create([copier.remote], PARTITIONS, KEPT)
    else:
        copier = ferry(clusters, topic, directory, follows=situation.follows)
    return situation.play(Stage(both, copier, directory))


if __name__ == "__main__":
    sys.exit(main())
