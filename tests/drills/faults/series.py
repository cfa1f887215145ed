"""A series of kills: real runs of `ferry run` on real brokers, struck at random moments, and a reader that watches all along.

Every round produces records (plain and transactional, some aborted; a trickle goes on all the time), starts a run in its own process tree
and strikes while lanes work. Most strikes are aimed: the whole tree is frozen for a moment, the target's coordinator says whether a
transaction of a lane is open, and only then the victim is struck, so that "inside an open transaction" is a fact. Orphans of a killed
parent stay alive through the next round. At the end the flow is run until nothing is left, then the target must equal the source record by
record, the watching read_committed reader must have seen every record once, in order, and the ledger must map every record to where it is.
Everything random comes from the seed.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from tests.both_clusters import both_clusters
from tests.drills.faults.hanging import settle_hanging
from tests.drills.faults.processes import jvms_of, send, tree_of, workers_of
from tests.drills.faults.producing import Trickle, numbers, produce_batch
from tests.drills.faults.watching import OpenTransactions, Watcher, number_of
from tests.opened import read_receipts
from tools.kafka import RecordSeen, compare_topics, read_all

from ferry.config import load_config

TOPICS = {"plain": "none", "packed": "lz4", "settled": "zstd"}
TRANSACTIONAL = "settled"
PARTITIONS = 3
RECORDS_A_TOPIC = 20_000
FLOW = "A->B"
CONFIG = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}
A->B.enabled = true
replication.factor = 1
A->B.topics = plain, packed, settled
A->B.ferry.transaction.mb = 8
A->B.ferry.transaction.seconds = 5
A->B.tasks.max = 2
"""
SPARK, INLINE = "local[2]", "inline"
STRIKES = ("worker", "jvm", "tree", "target broker", "source broker", "stop worker", "stop jvm", "stop target broker", "second run")
# When runs follow: another one takes over, and is killed in the middle of that, or the old one is.
HAND_OVERS = ("hand-over", "kill the newer run in the hand-over", "kill the older run in the hand-over")
FOLLOW_SECONDS = 20
# From the start of the newer run on: within it both runs are at work, and one takes over from the other.
HAND_OVER_SECONDS = (3.0, 15.0)
# A run of which nothing was killed for good must come to its end.
SURVIVABLE = frozenset(
    {
        "hand-over",
        "kill the newer run in the hand-over",
        "worker",
        "target broker",
        "source broker",
        "stop worker",
        "stop jvm",
        "stop target broker",
    }
)
# A run that neither ends nor makes headway is a finding.
RUN_SECONDS = 240.0
# Until the lanes of a run are at work: Spark's start on a loaded machine.
START_SECONDS = 90.0
# Longer than the copy of one round, most of which the run stands still: by then an aimed strike has missed.
AIM_SECONDS = 120.0
# For so long the run goes on between two questions whether a transaction is open. A transaction of a small copy takes some 50 ms.
AIM_STEP_SECONDS = 0.005
# The share of strikes that wait for an open transaction; the others hit what lies between.
AIMED = 0.8
CLEAN_RUNS = 4


@dataclass
class Outcome:
    """What a series found. `inside` counts strikes during an open transaction of the flow; `exits` the exit codes of struck runs;
    `hanging` the transactions that a killed broker forgot and the series settled as an operator would."""

    seed: int
    rounds: int = 0
    strikes: Counter[str] = field(default_factory=Counter)
    exits: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    inside: int = 0
    hanging: int = 0
    records: int = 0
    problems: list[str] = field(default_factory=list)
    trickle: str = ""

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, doubled, reordered or altered, and every run that could end well did."""
        return not self.problems

    def lines(self) -> list[str]:
        """For the log."""
        struck = ", ".join(f"{name} {count}" for name, count in sorted(self.strikes.items()))
        codes = "; ".join(
            f"{name}: " + ", ".join(f"{code} ({count} times)" for code, count in sorted(counts.items()))
            for name, counts in sorted(self.exits.items())
        )
        return [
            f"seed {self.seed}: {self.rounds} rounds, {self.inside} struck inside an open transaction",
            f"  struck: {struck}",
            f"  exit codes of the struck runs: {codes}",
            f"  {self.records:,} records compared; {self.trickle}; {self.hanging} hanging transactions of the broker settled",
            *(f"  PROBLEM {problem}" for problem in self.problems),
            "  equal, once, in order, explained by the ledger" if self.clean else "  NOT CLEAN",
        ]


class Series:
    """One series over two clusters of its own."""

    def __init__(self, directory: Path, seed: int, say: Callable[[str], None], *, follow: bool = False) -> None:
        self._random = random.Random(seed)
        self._strikes, self._follow = (*STRIKES, *HAND_OVERS) if follow else STRIKES, follow
        self._say = say
        self._clusters = ExitStack()
        self._source, self._target = self._clusters.enter_context(both_clusters(directory, {}))
        self._config = directory / "mm2.properties"
        self._config.write_text(CONFIG.format(source=self._source.bootstrap, target=self._target.bootstrap), encoding="latin-1")
        admin = AdminClient({"bootstrap.servers": self._source.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in TOPICS]).values():
            future.result(30)
        self._numbers = numbers()
        self._trickle = Trickle(self._source.bootstrap, TOPICS, PARTITIONS, self._numbers, seed)
        self._open = OpenTransactions(self._target.bootstrap, f"ferry-{FLOW}-")
        self._struck: list[psutil.Process] = []
        self._left_over: list[psutil.Process] = []
        self.outcome = Outcome(seed)

    def close(self) -> None:
        """Stop everything that was started."""
        send([*self._struck, *self._left_over], signal.SIGKILL)
        self._open.close()
        self._clusters.close()

    def prepare(self) -> Watcher:
        """Remote topics exist before the watcher starts."""
        self._produce()
        self._run_to_the_end()
        watcher = Watcher(self._target.bootstrap, [f"A.{topic}" for topic in TOPICS], PARTITIONS)
        watcher.start()
        self._trickle.start()
        return watcher

    def round(self, number: int) -> None:
        """Produce, run, strike."""
        self._produce()
        strike = self._random.choice(self._strikes)
        aimed = self._random.random() < AIMED
        process = self._start()
        if not self._at_work(process):
            strike, inside = "too late", 0
        else:
            time.sleep(self._random.choice([0.0, self._random.uniform(0.0, 0.2), self._random.uniform(0.0, 1.0)]))
            tree, inside = self._frozen(process, aimed=aimed)
            if tree:
                self._strike(strike, tree)
            else:
                strike, inside = "too late", 0
        code = self._wait(process)
        self._note(number, strike, inside, code)

    def finish(self, watcher: Watcher) -> Outcome:
        """Run until nothing is left, then compare."""
        self._trickle.finish()
        self.outcome.trickle = f"trickle: {self._trickle.committed} transactions committed, {self._trickle.aborted} aborted"
        if not any(self._run_to_the_end() for _ in range(CLEAN_RUNS)):
            self.outcome.problems.append("no clean run after the series")
        found = compare_topics(self._source.bootstrap, self._target.bootstrap, {topic: f"A.{topic}" for topic in TOPICS})
        self.outcome.records = found.records
        self.outcome.problems += [f"{difference}" for difference in found.differences[:5]]
        watcher.finish(found.records)
        mapped = self._mapped()
        for topic in TOPICS:
            sides = zip(read_all(self._source.bootstrap, topic), read_all(self._target.bootstrap, f"A.{topic}"), strict=True)
            for number, (source, target) in enumerate(sides):
                self._explain(f"A.{topic}-{number}", source, target, watcher.seen[f"A.{topic}", number], mapped[topic, number])
        return self.outcome

    def _explain(self, where: str, source: list[RecordSeen], target: list[RecordSeen], seen: list[int], mapped: dict[int, int]) -> None:
        """What the watcher saw, and where the ledger says that each record is."""
        wanted = [number_of(record.value or b"") for record in source]
        if seen != wanted:
            twice = len(seen) - len(set(seen))
            self.outcome.problems.append(f"the watcher saw {len(seen)} of {len(wanted)} records of {where}, {twice} of them twice")
        if mapped != dict(zip((record.offset for record in source), (record.offset for record in target), strict=False)):
            self.outcome.problems.append(f"the ledger does not explain {where}")

    def _mapped(self) -> defaultdict[tuple[str, int], dict[int, int]]:
        """Upstream to downstream offset of every record, by the ledger; an upstream offset that stands there twice is a problem."""
        mapped: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for receipt in read_receipts(load_config(self._config).flow(FLOW)):
            offsets = mapped[receipt.topic, receipt.partition]
            for upstream, downstream, count in receipt.runs:
                for index in range(count):
                    if offsets.setdefault(upstream + index, downstream + index) != downstream + index:
                        self.outcome.problems.append(f"{receipt.topic}-{receipt.partition}: offset {upstream + index} copied twice")
        return mapped

    def _note(self, number: int, strike: str, inside: int, code: int | None) -> None:
        self._say(f"round {number}: {strike}, {inside} transactions open, exit code {code}")
        self.outcome.rounds += 1
        self.outcome.strikes[strike] += 1
        self.outcome.inside += bool(inside)
        if code is not None:
            self.outcome.exits[strike][code] += 1
        if strike not in SURVIVABLE or code == 0:
            return
        hanging = len(settle_hanging(self._target.bootstrap, f"ferry-{FLOW}-"))
        self.outcome.hanging += hanging
        if not hanging:
            self.outcome.problems.append(f"round {number}: the run did not survive {strike}: exit code {code}")

    def _produce(self) -> None:
        produce_batch(self._source.bootstrap, TOPICS, TRANSACTIONAL, PARTITIONS, RECORDS_A_TOPIC, self._numbers)

    def _start(self, master: str = SPARK) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "ferry"), "run", str(self._config), "--flow", FLOW, "--master", master]
        if self._follow and master == SPARK:
            command += ["--follow", f"{FOLLOW_SECONDS}s"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def _at_work(self, process: subprocess.Popen[str]) -> bool:
        """Return when the run says that lanes start; its further output is drained."""
        ready = threading.Event()

        def drain() -> None:
            with process.stderr or contextlib.nullcontext(()) as lines:
                for line in lines:
                    if " to go" in line:
                        ready.set()
            ready.set()

        threading.Thread(target=drain, daemon=True).start()
        return ready.wait(START_SECONDS) and process.poll() is None

    def _frozen(self, process: subprocess.Popen[str], *, aimed: bool) -> tuple[list[psutil.Process], int]:
        """The tree, stopped, and how many transactions are open while it stands still; nothing when the run is over.

        It is stopped whenever the coordinator is asked, so on a busy machine a slow answer does not miss the transaction.
        """
        deadline = time.monotonic() + AIM_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            tree = tree_of(process.pid)
            send(tree, signal.SIGSTOP)
            inside = self._open.count()
            if inside or not aimed:
                return tree, inside
            send(tree, signal.SIGCONT)
            time.sleep(AIM_STEP_SECONDS)
        return [], 0

    def _strike(self, strike: str, tree: list[psutil.Process]) -> None:
        """Strike the frozen tree, or a broker, then let what lives go on."""
        victims = {"worker": workers_of(tree)[:1], "jvm": jvms_of(tree), "tree": tree}.get(strike, [])
        send(victims, signal.SIGKILL)
        stopped = {"stop worker": workers_of(tree), "stop jvm": jvms_of(tree), "second run": tree}.get(strike, [])
        cluster = {"target broker": self._target, "stop target broker": self._target, "source broker": self._source}.get(strike)
        if strike.endswith(" broker") and not strike.startswith("stop") and cluster is not None:
            cluster.kill()
        elif cluster is not None:
            cluster.pause()
        self._struck = tree
        if strike in HAND_OVERS:
            self._hand_over(strike, tree)
            return
        send([member for member in tree if member not in stopped], signal.SIGCONT)
        if strike == "second run":
            second = self._start()
            self._at_work(second)
            time.sleep(self._random.uniform(0.0, 3.0))
            send(stopped, signal.SIGCONT)  # the first one wakes up while the second one works
            self.outcome.exits["second run, the newer one"][self._ended(second)] += 1
        elif cluster is not None or stopped:
            time.sleep(self._random.uniform(0.5, 5.0))
            send(stopped, signal.SIGCONT)
        if cluster is not None and strike.startswith("stop"):
            cluster.resume()
        elif cluster is not None:
            cluster.run()

    def _hand_over(self, strike: str, tree: list[psutil.Process]) -> None:
        """Another run takes over from the one that is struck; perhaps one of the two is killed meanwhile."""
        send(tree, signal.SIGCONT)
        newer = self._start()
        ready = threading.Thread(target=self._at_work, args=(newer,), daemon=True)  # drains its output too
        ready.start()
        if strike != "hand-over":
            time.sleep(self._random.uniform(*HAND_OVER_SECONDS))
            send(tree if "older" in strike else tree_of(newer.pid), signal.SIGKILL)
        self.outcome.exits[f"{strike}, the newer one"][self._ended(newer)] += 1

    def _wait(self, process: subprocess.Popen[str]) -> int:
        code = self._ended(process)
        # What outlived its parent may go on while the next run takes over, no longer.
        send(self._left_over, signal.SIGKILL)
        self._left_over = [member for member in self._struck if member.is_running()]
        self._struck = []
        return code

    def _ended(self, process: subprocess.Popen[str]) -> int:
        try:
            return process.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.outcome.problems.append(f"a run did not end within {RUN_SECONDS:.0f} s")
            send(tree_of(process.pid), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            return -1

    def _run_to_the_end(self) -> bool:
        """Nobody strikes these runs: they do without Spark, whose start takes longer than their copy."""
        process = self._start(INLINE)
        self._at_work(process)
        return self._wait(process) == 0


def run_series(seed: int, rounds: int, say: Callable[[str], None], *, follow: bool = False) -> Outcome:
    """A whole series; its outcome. `follow`: of runs that follow."""
    with TemporaryDirectory(prefix="ferry-faults-") as directory:
        series = Series(Path(directory), seed, say, follow=follow)
        try:
            watcher = series.prepare()
            for number in range(1, rounds + 1):
                series.round(number)
            return series.finish(watcher)
        finally:
            series.close()
