"""`make soak MINUTES=30 SEED=7`: two real clusters under load, everything that can break breaks, then everything must be equal.

Exit code 1 when anything differs. All that is random comes from the seed; when things happen depends on the machine.
"""

from __future__ import annotations

import argparse
import faulthandler
import platform
import random
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka
from confluent_kafka.admin import AdminClient
from tests.drills.faults.processes import send
from tests.drills.histories.model import Place
from tests.drills.soak.ending import Ending
from tests.drills.soak.faults import Faults
from tests.drills.soak.landscape import Changes
from tests.drills.soak.producers import Writer
from tests.drills.soak.readers import Reader
from tests.drills.soak.recording import Recorder
from tests.drills.soak.report import Log
from tests.drills.soak.runs import Schedule, start_run
from tests.drills.soak.settling import Operator
from tests.drills.soak.stage import Stage
from tests.drills.soak.summary import Figures, page
from tests.drills.soak.topics import COMPACTED, OURS, REMOTE_PREFIX, Topics
from tools.kafka import SandboxCluster
from tools.kafka.reading import partition_bounds

from ferry import __version__
from ferry.sandbox.jars import KAFKA_VERSION

# Records a second of each writer: what two cores bear beside brokers, Spark and checks.
RATE = 70.0
# The last runs, until two in a row end well and the second finds nothing left to do.
LAST_RUNS = 6
RUN_SECONDS = 300.0
PAGES = Path(".ferry")


class Soak:
    """One soak over one stage."""

    def __init__(self, stage: Stage, log: Log, *, follow: bool) -> None:
        chance = random.Random(log.seed)
        seeds = [chance.randrange(2**32) for _ in range(8)]
        self._stage, self._log = stage, log
        self.topics, self.recorder = Topics(), Recorder()
        self.recorder.compacted.add(COMPACTED)
        source = stage.source_proxy.bootstrap
        self._writers = [Writer(source, self.topics, self.recorder, seeds[number], RATE) for number in range(2)]
        self._writers += [Writer(source, self.topics, self.recorder, seeds[2 + n], RATE, f"soak-writer-{n}") for n in range(2)]
        self._readers: list[Reader] = []
        self._witness = Reader("witness", stage.source.bootstrap, "", self.recorder.source_polls)
        self._schedule = Schedule(stage.config, log, seeds[4], follow=follow)
        self._changes = Changes(stage, self.topics, self.recorder, log, seeds[5], self._schedule.disturbed)
        self.faults = Faults(stage, self._schedule, log, seeds[6])
        self.operator = Operator(stage, self.faults, self.recorder, log, seeds[7])

    def go(self, minutes: float) -> None:
        """Load and faults for so long, then the verdict."""
        end = time.monotonic() + minutes * 60
        self._witness.start()
        self._read("early")
        parts: tuple[Writer | Schedule | Changes | Faults | Operator, ...]
        parts = (*self._writers, self._schedule, self._changes, self.faults, self.operator)
        for part in parts:
            part.start()
        time.sleep(minutes * 30)
        self._read("halfway")
        time.sleep(max(0.0, end - time.monotonic()))
        self._log.say("faults end")
        for part in reversed(parts):
            part.finish()
        self._catch_up()
        Ending(self._stage, self.topics.living, self.recorder, self._log).judge()

    @property
    def orphans(self) -> int:
        """Processes without parents that still live; they are killed."""
        left = [process for process in self.faults.orphans if process.is_running()]
        send(left, signal.SIGKILL)
        return len(left)

    def _read(self, name: str) -> None:
        reader = Reader(name, self._stage.target.bootstrap, REMOTE_PREFIX, self.recorder.polls)
        self._readers.append(reader)
        reader.start()

    def _catch_up(self) -> None:
        for problem in self.operator.await_stable_source():
            self._log.problem(problem)
        clean = 0
        for _ in range(LAST_RUNS):
            self.operator.settle()
            run = start_run(self._stage.config, "--master", "local[2]")
            code = run.process.wait(RUN_SECONDS)
            self._log.exits["after the faults"][code] += 1
            self._log.say(f"run after the faults ended with {code}")
            clean = clean + 1 if code == 0 else 0
            if code != 0:
                self._log.say(" | ".join(run.said))
            if clean == 2:
                break
        else:
            self._log.problem("no two clean runs after the faults")
        self._read("afterwards")
        self._finish(self._readers, self._stage.target, REMOTE_PREFIX)
        # The first witness saw deleted topics and what compaction took since. It may have been left behind; a new one sees what stays.
        self._witness.finish({})
        again = Reader("witness afterwards", self._stage.source.bootstrap, "", self.recorder.source_polls)
        again.start()
        self._finish([again], self._stage.source, "")

    def _finish(self, readers: Sequence[Reader], cluster: SandboxCluster, prefix: str) -> None:
        ends = _ends(cluster, prefix + OURS)
        for reader in readers:
            reader.finish(ends)
            for problem in reader.problems:
                self._log.problem(problem)


def _ends(cluster: SandboxCluster, prefix: str) -> dict[Place, int]:
    client = AdminClient({**cluster.client_settings(), "log_level": 0})
    topics = [name for name in client.list_topics(timeout=30).topics if name.startswith(prefix)]
    return {(name, number): end for name in topics for number, (_, end) in partition_bounds(cluster.bootstrap, name).items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--follow", action="store_true", help="runs that follow, and take over from each other")
    parser.add_argument("--page", type=Path, help="default: .ferry/soak-seed-SEED.md, or soak-following-seed-SEED.md")
    options = parser.parse_args()
    # Asked to end, it stops what it started; asked by SIGUSR1, it says what it waits for.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    faulthandler.register(signal.SIGUSR1)
    log = Log(options.seed)
    log.say(f"{options.minutes:g} minutes")
    with TemporaryDirectory(prefix=f"ferry-soak-{options.seed}-") as directory, Stage(Path(directory), options.seed) as stage:
        soak = Soak(stage, log, follow=options.follow)
        soak.go(options.minutes)
        versions = (
            f"Ferry {__version__}, Kafka {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}, Python {platform.python_version()}"
        )
        figures = Figures(
            options.minutes,
            options.follow,
            f"{datetime.now(UTC):%Y-%m-%d}, {versions}; one broker a cluster, two cores",
            soak.recorder.sent,
            soak.recorder.transactions(),
            soak.faults.inside,
            (soak.operator.settled_source, soak.operator.settled_target),
            soak.orphans,
        )
    path = options.page or PAGES / f"soak-{'following-' if options.follow else ''}seed-{options.seed}.md"
    text = page(log, figures)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(text, flush=True)  # noqa: T201 - the report
    log.say(f"{len(log.problems)} problems; {path} is written")
    return 1 if log.problems else 0


if __name__ == "__main__":
    sys.exit(main())
