"""Draws on a terminal how far a copy or a verify is; elsewhere its lines are printed as they come."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ferry.cli.output import notice

BAR_WIDTH = 20


def is_watched() -> bool:
    """Whether a person sees stderr. A command in the background must not draw: it would overwrite what the person types."""
    with suppress(OSError):  # it is not the terminal of this process
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    return False


@contextmanager
def drawn(doing: str, *, as_json: bool) -> Iterator[Callable[[str], None]]:
    """Gives a function that takes the lines of a copy or a verify. The bar is on stderr, and is gone after the block."""
    if as_json or not is_watched():
        yield notice
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    from ferry.copying.committed import progress_in

    # Words that do not fit go to the next line, whole.
    text = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1))
    console = Console(stderr=True, highlight=False)
    with Progress(SpinnerColumn(), BarColumn(BAR_WIDTH), text, console=console, transient=True, expand=True, redirect_stdout=False) as bar:
        task = bar.add_task(doing, total=None)

        def say(line: str) -> None:
            found = progress_in(line)
            if found is None:
                console.print(line, markup=False, soft_wrap=True)
            else:
                bar.update(task, completed=found[0], total=found[1], description=line)

        yield say
