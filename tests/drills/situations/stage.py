"""One situation while it is played: two clusters of its own, a flow between them in the Airflow of all, and what is kept of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.airflow_api import AirflowApi
from demo.airflow_services import ROOT
from tests.drills.situations.services import SituationsAirflow
from tests.waiting import until
from tools.kafka import SandboxCluster

from ferry.config import Flow, load_config

TOPICS = {"orders": 3, "payments": 2}
RETENTION = {"retention.ms": str(7 * 86_400_000)}
BUSY_RECORDS, BUSY_PAUSE = 100, 0.2
# $A and $B stand for the aliases. A run a day, so that none begins while a situation is played; few syncs, so that a run is short.
CONFIG = """\
clusters = $A, $B
$A.bootstrap.servers = $source
$B.bootstrap.servers = $target
$A->$B.enabled = true
$A->$B.topics = $topics
$A->$B.ferry.schedule = 0 3 * * *
$A->$B.ferry.alert.callback = tests.drills.situations.paging:page
$A->$B.ferry.alert.callback.args = {"tests.drills.situations.paging:page": {"path": "$alerts"}}
replication.factor = 1
ferry.internal.topics.replication.factor = 1
sync.topic.acls.enabled = false
emit.heartbeats.enabled = false
emit.offset-syncs.enabled = false
emit.checkpoints.enabled = false
"""


@dataclass
class Stage:
    """`number` makes the aliases: Airflow and the page must not take one situation's flow for another's. `lines`: more of the config."""

    number: int
    directory: Path
    config: Path
    airflow: SituationsAirflow
    api: AirflowApi
    source: SandboxCluster
    target: SandboxCluster
    lines: tuple[str, ...] = ()
    last_run: str = ""
    _ran: bool = field(default=False, init=False)

    @property
    def aliases(self) -> tuple[str, str]:
        return f"A{self.number}", f"B{self.number}"

    @property
    def dag(self) -> str:
        return f"ferry.A{self.number}.B{self.number}"

    @property
    def flow(self) -> Flow:
        return load_config(self.config).flows[0]

    @property
    def alerts(self) -> Path:
        return self.directory / "alerts"

    def configure(self, *lines: str, path: Path | None = None, topics: str = ", ".join(TOPICS)) -> Path:
        """Write the config with these lines at its end."""
        source, target = self.aliases
        servers = {"source": self.source.bootstrap, "target": self.target.bootstrap}
        names = {"A": source, "B": target, **servers, "topics": topics, "alerts": str(self.alerts)}
        text = Template(CONFIG + "\n".join(lines) + "\n").substitute(names)
        path = path or self.config
        scratch = path.with_suffix(".new")  # Airflow reads it all the time
        scratch.write_text(text, encoding="latin-1")
        scratch.replace(path)
        return path

    def begin(self) -> None:
        """Topics, config, DAG."""
        client = AdminClient(self.source.client_settings())
        for future in client.create_topics([NewTopic(name, count, 1, config=RETENTION) for name, count in TOPICS.items()]).values():
            future.result(30)
        self.configure(*self.lines)
        self.airflow.show(self.api, self.dag)

    def fill(self, records: int = 400, *, size: int = 200, minutes_ago: float = 0.0) -> None:
        """More records in each topic."""
        producer = Producer({**self.source.client_settings(), "linger.ms": 5, "log_level": 2})
        moment = round((time.time() - 60 * minutes_ago) * 1000)
        for number in range(records):
            for topic, partitions in TOPICS.items():
                producer.produce(topic, b"%d" % number * (size // len(str(number))), partition=number % partitions, timestamp=moment)
                producer.poll(0)
        assert producer.flush(60) == 0

    @contextmanager
    def busy(self, minutes_ago: float) -> Iterator[None]:
        """Applications write all the time."""
        over = threading.Event()

        def write() -> None:
            while not over.wait(BUSY_PAUSE):
                self.fill(BUSY_RECORDS, minutes_ago=minutes_ago)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()

    def ferry(self, *arguments: str, config: Path | None = None) -> str:
        """A command of Ferry's, with what a person who typed it sees; its exit code is the last line."""
        command = [str(Path(sys.executable).with_name("ferry")), arguments[0], str(config or self.config), *arguments[1:]]
        environment = {**self.airflow.environment(), "COLUMNS": "120"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return f"{done.stdout}{done.stderr}exit code {done.returncode}\n"

    def copy(self, config: Path | None = None) -> None:
        """A run by hand, which must succeed."""
        told = self.ferry("run", "--flow", self.flow.name, "--master", "inline", config=config)
        assert told.endswith("exit code 0\n"), told

    def start(self) -> None:
        """A run in Airflow; the first one is that of the schedule."""
        self.last_run = self.api.trigger(self.dag) if self._ran else self.api.unpause(self.dag)
        self._ran = True

    def end(self) -> None:
        until(lambda: self.api.run_state(self.dag, self.last_run).finished, lambda: f"{self.dag}: run {self.last_run} never ended")

    def run(self) -> None:
        self.start()
        self.end()

    def told(self) -> list[dict[str, object]]:
        """The alerts so far."""
        return [json.loads(line) for line in self.alerts.read_text(encoding="utf-8").splitlines()] if self.alerts.exists() else []
