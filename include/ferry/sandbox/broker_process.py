"""Finds the processes of a broker by their command line: Kafka's classes with one server.properties, whose absolute path is unique.

Ferry records no pid: systems reuse pids, and after an interruption there would be no record.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import psutil

from ferry.errors import FerryError

MAIN_CLASS = "kafka.Kafka"
STORAGE_TOOL = "kafka.tools.StorageTool"
# A storage tool may still write to a removed directory.
BROKER_CLASSES = (MAIN_CLASS, STORAGE_TOOL)
# A killed process ends at once, unless the disk hangs; then the caller continues.
KILL_SECONDS = 10.0


class SandboxFailed(FerryError):
    """A sandbox cluster did not start, or is not in the state that a call needs."""


def find_process(properties: Path, main_class: str = MAIN_CLASS) -> psutil.Process | None:
    """The process that runs `main_class`, by default a broker, with that server.properties. Any process may have started it."""
    found = next((process.pid for process in psutil.process_iter() if _runs(process, properties, (main_class,))), None)
    # psutil keeps the objects of an earlier look, and refuses to end a process whose number an earlier one had.
    return None if found is None else psutil.Process(found)


def kill_all(properties: Path, main_classes: Sequence[str] = BROKER_CLASSES) -> None:
    killed = [process for process in psutil.process_iter() if _runs(process, properties, main_classes)]
    for process in killed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(killed, KILL_SECONDS)


def _runs(process: psutil.Process, properties: Path, main_classes: Sequence[str]) -> bool:
    """False for zombies: their command line is gone."""
    with contextlib.suppress(psutil.Error):
        arguments = process.cmdline()
        if str(properties) in arguments and process.status() != psutil.STATUS_ZOMBIE:
            return any(name in arguments for name in main_classes)
    return False
