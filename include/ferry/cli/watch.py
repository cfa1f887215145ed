"""`ferry watch`: shows the state of flows again and again.

On a terminal it draws on the alternate screen and reads single keys; it restores both when it ends. Elsewhere it prints a line, or a JSON
document, for each look.
"""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ferry.cli.options import AnyFlow, AsJson, Config, load
from ferry.cli.output import line
from ferry.ending import interrupted_by_signals
from ferry.errors import ExitCode

if TYPE_CHECKING:
    from ferry.monitoring.watching import FlowFrame, Watcher

WATCH_VERSION = 1
DEFAULT_INTERVAL = 5.0
# The screen reacts to a key or a new look within this time.
TICK_SECONDS = 0.2

Interval = Annotated[float, typer.Option("--interval", "-n", min=1.0, help="Seconds between two updates.")]
Once = Annotated[bool, typer.Option("--once", help="Read once, print a line for each flow, and end.")]


def watch(config: Config, flow: AnyFlow = None, interval: Interval = DEFAULT_INTERVAL, once: Once = False, as_json: AsJson = False) -> None:
    """Watch flows: lag, speed, headroom, the last run, losses. Tries again if a cluster does not answer. Leave with q or Ctrl-C."""
    from ferry.monitoring.watching import UNREACHABLE, FlowWatcher, Watcher

    loaded = load(config)
    flows = loaded.flows if flow is None else (loaded.flow(flow),)
    if once:
        frames = [FlowWatcher(entry).look() for entry in flows]
        for entry in frames:
            _print(entry, as_json=as_json)
        raise typer.Exit(ExitCode.UNREACHABLE if any(entry.state == UNREACHABLE for entry in frames) else ExitCode.DONE)
    watcher = Watcher(flows, interval)
    with interrupted_by_signals(), suppress(KeyboardInterrupt), watcher:
        if sys.stdout.isatty() and not as_json:
            _draw(watcher, interval)
        else:
            _tell(watcher, as_json=as_json)
    if watcher.problem is not None:
        raise watcher.problem


def _draw(watcher: Watcher, interval: float) -> None:
    from rich.live import Live

    from ferry.cli.watch_screen import screen

    with _single_keys() as keys, Live(console=Console(highlight=False), screen=True, auto_refresh=False) as live:
        while watcher.problem is None:
            live.update(screen(watcher.frames, interval, time.time(), live.console.width), refresh=True)
            if keys is None:
                time.sleep(TICK_SECONDS)
            elif select.select([keys], [], [], TICK_SECONDS)[0] and os.read(keys, 64)[:1] in {b"q", b"Q", b"\x03", b""}:
                return


def _tell(watcher: Watcher, *, as_json: bool) -> None:
    told: dict[str, FlowFrame] = {}
    while watcher.problem is None:
        for entry in watcher.frames:
            if told.get(entry.flow) is not entry:
                told[entry.flow] = entry
                _print(entry, as_json=as_json)
        time.sleep(TICK_SECONDS)


def _print(entry: FlowFrame, *, as_json: bool) -> None:
    from ferry.cli.watch_screen import one_line

    line(json.dumps({"version": WATCH_VERSION, **entry.document()}) if as_json else one_line(entry))
    sys.stdout.flush()


@contextmanager
def _single_keys() -> Iterator[int | None]:
    """The descriptor of the keyboard, which delivers single keys without echo; None: there is no keyboard.

    Ctrl-Z does not suspend: the shell would continue in the alternate screen, and would set line mode before `ferry watch` goes on.
    """
    if not sys.stdin.isatty():
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        mode = termios.tcgetattr(descriptor)
        mode[tty.CC][termios.VSUSP] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
