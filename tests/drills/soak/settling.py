"""What an operator would do now and then: settle transactions that a killed broker forgot, and tidy the ledger."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import closing

from kafka.errors import KafkaError
from tests.drills.exactness.following import Reader
from tests.drills.faults.hanging import settle_hanging
from tests.drills.soak.faults import Faults
from tests.drills.soak.recording import Recorder
from tests.drills.soak.report import Log
from tests.drills.soak.stage import FLOW, Stage
from tools.kafka.reading import partition_bounds

LOOK_SECONDS = 10.0
UPKEEP_EVERY = 3
UPKEEP_SECONDS = 90.0
# A transaction that ended so long before a broker was killed has its markers.
BEFORE_KILL_SECONDS = 10.0
# The longest that a transaction of a producer that has gone stays open, and the time to notice.
STABLE_SECONDS = 60.0


class Operator(threading.Thread):
    """Looks every few seconds until told to stop."""

    def __init__(self, stage: Stage, faults: Faults, recorder: Recorder, log: Log, seed: int) -> None:
        super().__init__(name="operator", daemon=True)
        self._stage, self._faults, self._recorder, self._log = stage, faults, recorder, log
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self.settled_source = self.settled_target = 0

    def run(self) -> None:
        """Settle, and sometimes tidy."""
        looks = 0
        while not self._stopped.wait(LOOK_SECONDS):
            looks += 1
            self.settle()
            if looks % UPKEEP_EVERY == 0:
                self._tidy()

    def finish(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self.join()

    def settle(self) -> None:
        """Both clusters; not while one is down on purpose."""
        with self._stage.broker_lock:
            try:
                at_target = settle_hanging(self._stage.target.bootstrap, f"ferry-{FLOW}-")
                at_source = settle_hanging(self._stage.source.bootstrap, "soak-writer-")
            except (KafkaError, OSError) as problem:
                self._log.say(f"the operator got no answer: {type(problem).__name__}: {problem}")
                return
        if at_target:
            self.settled_target += len(at_target)
            self._log.say(f"hanging transactions of the target settled: {', '.join(at_target)}")
        if at_source:
            self.settled_source += len(at_source)
            since = max(self._faults.kills_of_source, default=time.monotonic()) - BEFORE_KILL_SECONDS
            names = self._recorder.settled(at_source, since)
            self._log.say(f"hanging transactions of the source settled: {', '.join(at_source)}; in doubt: {', '.join(names)}")

    def await_stable_source(self) -> list[str]:
        """Until no transaction is open at the source; what does not settle."""
        deadline = time.monotonic() + STABLE_SECONDS
        while open_places := self._unstable():
            if time.monotonic() > deadline:
                return [f"{place} of the source has an open transaction that nobody ends" for place in open_places]
            self.settle()
            time.sleep(1.0)
        return []

    def _unstable(self) -> list[str]:
        source = self._stage.source
        with closing(Reader(source, "read_uncommitted")) as reader:
            topics = [name for name in reader._consumer.list_topics(timeout=15).topics if name.startswith("soak-")]
            return [
                f"{topic}-{number}"
                for topic in topics
                for number, (_, stable) in partition_bounds(source.bootstrap, topic).items()
                if reader.end((topic, number)) != stable
            ]

    def _tidy(self) -> None:
        command = [sys.executable, "-m", "tests.drills.soak.upkeep", str(self._stage.config)]
        struck = self._chance.random() < 0.3
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said, complaints = process.communicate(timeout=self._chance.uniform(1.0, 4.0) if struck else UPKEEP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            if struck:
                self._log.fault("kill ledger upkeep")
            else:
                self._log.problem(f"ledger upkeep did not end within {UPKEEP_SECONDS:.0f} s")
            return
        if process.returncode == 0:
            self._log.event("ledger upkeep", said.strip())
        else:
            self._log.say(f"ledger upkeep was refused: {complaints.strip().splitlines()[-1:]}")
