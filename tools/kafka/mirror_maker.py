"""MirrorMaker 2 itself, in its dedicated mode, to compare with and to migrate from; on 127.0.0.1 like the clusters.

It never ends by itself. It ends with the process that started it, as brokers do (`guard.py`), because its config file names it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.kafka.guard import guard
from tools.kafka.jars import mirror_maker_jars
from tools.kafka.properties_file import write_properties

from ferry.sandbox.broker_process import SandboxFailed
from ferry.sandbox.jars import java

MIRROR_MAKER_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
# It stops its connectors one after the other, each within Connect's five seconds; longer means that it hangs.
STOP_SECONDS = 60.0
JAVA_OPTIONS = ("-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
LOG_TAIL_LINES = 15


@dataclass
class MirrorMaker:
    """A running (or stopped) MirrorMaker 2; `config` is absolute."""

    config: Path
    log: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, properties: Mapping[str, str], config: Path, *, java_options: Sequence[str] = JAVA_OPTIONS) -> MirrorMaker:
        """Write `properties` to `config` and start with it; returns at once. Its log lies beside the file."""
        config = write_properties(properties, config.resolve())
        log = config.with_suffix(".log")
        command = [java(), *java_options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", f"{mirror_maker_jars()}/*", MIRROR_MAKER_CLASS, str(config)]
        guard.watch(config)
        with log.open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)
        return cls(config, log, process)

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self.process.poll() is None

    def check(self) -> None:
        """SandboxFailed with the end of its log when it has ended by itself."""
        if not self.running:
            raise SandboxFailed(f"MirrorMaker 2 ended with code {self.process.returncode}; its log ends with:\n{self.log_tail()}")

    def stop(self) -> None:
        """SIGTERM, so that it commits and flushes its offsets; killed when it takes too long. Nothing happens when it does not run."""
        if self.running:
            self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])

    def __enter__(self) -> MirrorMaker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
