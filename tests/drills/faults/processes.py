"""The process tree of a run: found, frozen, killed. Every process is a psutil one, so a recycled pid is never hit."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable

import psutil


def tree_of(pid: int) -> list[psutil.Process]:
    """The process and everything below it, parents first."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def workers_of(tree: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Spark's Python workers: what the daemon forked, where lanes run."""
    daemons = [member for member in tree if "ferry.spark.worker_daemon" in command_of(member)]
    return [member for member in daemons if _parent(member) in {daemon.pid for daemon in daemons}]


def jvms_of(tree: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The JVM of spark-submit."""
    return [member for member in tree if "SparkSubmit" in command_of(member)]


def send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """The signal to all that still live."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def command_of(process: psutil.Process) -> str:
    """Its command line; empty when it is gone."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def lives(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and that nobody has waited for does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _parent(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.ppid())
    return -1
