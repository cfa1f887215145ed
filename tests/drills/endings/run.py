"""`make endings`: short commands of all kinds, many at a time, some interrupted in their middle. None may end by a signal that nobody sent.

Thirty at a time are a load of thirty: while a process ends, threads of clients then live on for long. Clusters are real ones, closed ports
and servers that never answer.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.both_clusters import both_clusters

from ferry.sandbox.sample_data import load_sample_topics

FERRY = Path(sys.executable).with_name("ferry")
# A command on a machine with such a load; one that takes longer hangs.
LIMIT_SECONDS = 400.0
# Anywhere between the first import and the last word, under such a load.
LATEST_SIGNAL_SECONDS = 30.0
INTERRUPTED_SHARE = 0.35
FLOW = ("--flow", "A->B")
# What is done with a config of two clusters.
ON_CLUSTERS = (
    ("plan", *FLOW),
    ("plan", *FLOW, "--json"),
    ("status",),
    ("status", *FLOW, "--json"),
    ("doctor",),
    ("ledger", *FLOW),
    ("verify", *FLOW),
    ("translate", *FLOW),
    ("explain", *FLOW, "--group", "ferry-sample"),
    ("export-offsets", *FLOW),
    ("seed", *FLOW, "--from-mm2", "--dry-run"),
    ("failover", *FLOW, "--dry-run"),
    ("watch", "--once"),
    ("watch", "--interval", "1"),
    ("run", *FLOW, "--master", "inline"),
    ("sync", "configs", *FLOW),
    ("sync", "checkpoints", *FLOW),
    ("sync", "groups", *FLOW, "--dry-run"),
    ("format", "state", *FLOW),
    ("format", "runs", *FLOW),
)
# Each has a JVM, four CPU seconds and 250 MB.
SPARK_EVERY = 40


@dataclass(frozen=True)
class Case:
    """A command, and the signal that it gets after some seconds, if any."""

    arguments: tuple[str, ...]
    number: signal.Signals | None
    after: float
    completes: bool = False

    @property
    def name(self) -> str:
        sent = f" + {self.number.name}" if self.number else ""
        return ("completion of topics" if self.completes else self.arguments[0]) + sent


def case(draw: random.Random, configs: dict[str, Path], directory: Path, place: int) -> Case:
    """One of all kinds; `configs` by what their clusters are like."""
    config = draw.choice(list(configs.values()))
    number = draw.choice([signal.SIGINT, signal.SIGTERM]) if draw.random() < INTERRUPTED_SHARE else None
    kind = draw.randrange(len(ON_CLUSTERS) + 3)
    if place % SPARK_EVERY == SPARK_EVERY - 1:
        arguments: tuple[str, ...] = ("verify", str(configs["real"]), *FLOW, "--master", "local[1]")
    elif kind < len(ON_CLUSTERS):
        name, *rest = ON_CLUSTERS[kind]
        arguments = (name, str(config), *rest)
    elif kind == len(ON_CLUSTERS):
        arguments = ("completion", "bash")
    elif kind == len(ON_CLUSTERS) + 1:
        return Case(("plan", str(config), "--topic", ""), number, draw.uniform(0, LATEST_SIGNAL_SECONDS), completes=True)
    else:
        servers = [line.split("= ")[1] for line in config.read_text().splitlines() if "bootstrap" in line]
        answers = ("--source", servers[0], "--target", servers[1], "--topics", ".*", "--no-input")
        arguments = ("init", str(directory / f"init-{place}.properties"), *answers)
    if arguments[0] == "watch" and "--once" not in arguments:
        number = number or signal.SIGINT
    return Case(arguments, number, draw.uniform(0, LATEST_SIGNAL_SECONDS))


def carry_out(entry: Case) -> tuple[Case, int, str]:
    """The exit code, negative for a signal, and what it said on stderr."""
    environment = dict(os.environ)
    if entry.completes:
        words = " ".join(["ferry", *entry.arguments])
        environment |= {"_FERRY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(entry.arguments))}
    command = [str(FERRY), *(() if entry.completes else entry.arguments)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        if entry.number is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(entry.after)
            process.send_signal(entry.number)
        try:
            said = process.communicate(timeout=LIMIT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            said = f"{process.communicate()[1]}\nit hung"
    return entry, process.returncode, said


def wrong(entry: Case, code: int, said: str) -> bool:
    """Whether it ended by a signal that nobody sent, or hung."""
    return (code < 0 and code != -(entry.number or 0)) or "Fatal Python error" in said or said.endswith("it hung")


def silent_server() -> str:
    """The address of a server that takes connections and never answers."""
    server, taken = socket.create_server(("127.0.0.1", 0)), []

    def take() -> None:
        while True:
            taken.append(server.accept())

    threading.Thread(target=take, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def config_for(path: Path, source: str, target: str) -> Path:
    lines = ["clusters = A, B", f"A.bootstrap.servers = {source}", f"B.bootstrap.servers = {target}"]
    lines += ["A->B.enabled = true", "A->B.topics = accounts, payments", "replication.factor = 1"]
    path.write_text("\n".join([*lines, *(f"{alias}.security.protocol = PLAINTEXT" for alias in "AB"), ""]))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=300)
    parser.add_argument("--at-a-time", type=int, default=30)
    options = parser.parse_args()
    draw, began = random.Random(options.seed), time.monotonic()
    with TemporaryDirectory(prefix="ferry-endings-") as place, both_clusters(Path(place) / "clusters") as (source, target):
        directory = Path(place)
        load_sample_topics(source.bootstrap, seed=options.seed, records=200)
        configs = {
            "real": config_for(directory / "real.properties", source.bootstrap, target.bootstrap),
            "gone": config_for(directory / "gone.properties", source.bootstrap, "127.0.0.1:1"),
            "silent": config_for(directory / "silent.properties", silent_server(), target.bootstrap),
        }
        cases = [case(draw, configs, directory, number) for number in range(options.commands)]
        codes: Counter[tuple[str, int]] = Counter()
        crashed = []
        with ThreadPoolExecutor(options.at_a_time) as pool:
            for entry, code, said in pool.map(carry_out, cases):
                codes[entry.name, code] += 1
                if wrong(entry, code, said):
                    crashed.append(f"{' '.join(entry.arguments)} ({entry.name}): ended with {code}: {said[-1500:]}")
    for (name, code), count in sorted(codes.items()):
        print(f"{count:4} {name}: {code}")  # noqa: T201 - the report
    summary = f"{options.commands} commands, {options.at_a_time} at a time, {(time.monotonic() - began) / 60:.1f} minutes"
    print(*crashed, f"{summary}: {len(crashed)} ended by a signal that nobody sent, or hung", sep="\n")  # noqa: T201 - the report
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
