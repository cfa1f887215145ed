"""Draws tables as wide as a console, and breaks no word: people copy names from them.

If the words of a table do not fit side by side, each row is a block instead: its first cell, and below it a line for each other cell.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as DrawnTable
from rich.text import Text

from ferry.pipeline.tables import Table

AROUND, AT_END = 3, 1  # blanks around each column, and at the end of the line
# Colours of cells that hold a state.
COLOURS = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def draw(table: Table, console: Console) -> None:
    """Print it; numbers are aligned to the right."""
    texts = table.texts
    columns = list(zip(table.columns, *texts, strict=True))
    least = [_longest(column, str.split) for column in columns]
    room = console.width - AROUND * len(columns) - AT_END
    if sum(least) > room:
        console.out("\n".join(_blocks(table, texts, console.width)), highlight=False)
        return
    most = [_longest(column, str.splitlines) for column in columns]
    shown = DrawnTable(title=escape(table.title) or None, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for index, (column, size) in enumerate(zip(table.columns, _widths(least, most, room), strict=True)):
        numeric = bool(table.rows) and all(row[index] in (None, "") or isinstance(row[index], int | float) for row in table.rows)
        shown.add_column(column, justify="right" if numeric else "left", width=size)
    for row in texts:
        shown.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    console.print(shown)


def _longest(texts: Iterable[str], split: Callable[[str], list[str]]) -> int:
    """Letters of the longest part of any of the texts."""
    return max((len(part) for text in texts for part in split(text)), default=0)


def _widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Each column gets the width of its longest word. The rest goes first to columns that need little more; the others get equal shares."""
    widths, left = list(least), room - sum(least)
    order = sorted(range(len(widths)), key=lambda index: most[index] - least[index])
    for place, index in enumerate(order):
        more = min(most[index] - least[index], left // (len(order) - place))
        widths[index] += more
        left -= more
    return widths


def _blocks(table: Table, texts: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    if table.title:
        yield table.title
    for first, *others in texts:
        cells = [("", first), *((f"  {column}: ", cell) for column, cell in zip(table.columns[1:], others, strict=True) if cell)]
        for name, cell in cells:
            yield fill(name + cell, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
