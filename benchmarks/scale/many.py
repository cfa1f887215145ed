"""`python -m benchmarks.scale.many`: what `ferry plan` costs with 100,000 partitions of which 1 % changed, on played brokers (played.py).

Prints a Markdown table. The played brokers run in another process of this machine: the wall time includes what they take.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.kafka.properties_file import write_properties

from benchmarks.ferry_side import HERE
from benchmarks.scale.played import played
from ferry.config import load_config

FLOW, WIDTH = "A->B", 5
HEAD = ("partitions", "changed", "wall s", "CPU s", "MiB")


def main(arguments: list[str] | None = None) -> int:
    """0 when every plan was made."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.many", description=__doc__)
    parser.add_argument("--partitions", type=int, action="append", help="may be repeated; by default 10,000 and 100,000")
    parser.add_argument("--play", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--changed", type=int, default=-1, help="partitions with new records (default: 1 %% of them)")
    options = parser.parse_args(arguments)
    sizes = options.partitions or [10_000, 100_000]
    if options.play:
        return _play(options.play, sizes[0], options.changed)
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    for partitions in sizes:
        for changed in (0, partitions // 100) if options.changed < 0 else (options.changed,):
            with tempfile.TemporaryDirectory() as directory:
                _measure(Path(directory) / "mm2.properties", partitions, changed)
    return 0


def _measure(config: Path, partitions: int, changed: int) -> None:
    play = [
        sys.executable,
        "-m",
        "benchmarks.scale.many",
        "--play",
        str(config),
        "--partitions",
        str(partitions),
        "--changed",
        str(changed),
    ]
    with subprocess.Popen(play, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as playing:
        if playing.stdout is None or not playing.stdout.readline():
            raise SystemExit("the played brokers did not start")
        began = time.monotonic()
        command = [str(HERE), "plan", str(config), "--flow", FLOW]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as planning:
            _, status, used = os.wait4(planning.pid, 0)
            planning.returncode = os.waitstatus_to_exitcode(status)
        seconds, cpu = time.monotonic() - began, used.ru_utime + used.ru_stime
        playing.communicate()
    if planning.returncode:
        raise SystemExit(f"ferry plan ended with {planning.returncode}")
    print(f"| {partitions:,} | {changed:,} | {seconds:.1f} | {cpu:.1f} | {used.ru_maxrss / 1024:,.0f} |", flush=True)


def _play(config: Path, partitions: int, changed: int) -> int:
    """Play both clusters until standard input ends; write the flow's properties when they answer."""
    properties = {
        "clusters": "A, B",
        "A.bootstrap.servers": "127.0.0.1:1",
        "B.bootstrap.servers": "127.0.0.1:2",
        "A->B.enabled": "true",
        "A->B.topics": "t.*",
        "A->B.emit.heartbeats.enabled": "false",
    }
    write_properties(properties, config)
    for alias, cluster in zip("AB", played(load_config(config).flow(FLOW), partitions // WIDTH, WIDTH, changed), strict=True):
        cluster.start()
        properties[f"{alias}.bootstrap.servers"] = f"127.0.0.1:{cluster.port}"
    write_properties(properties, config)
    print("ready", flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
