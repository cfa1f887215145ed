"""How `ferry watch` shows its frames: as panels on a terminal, elsewhere as lines."""

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ferry.copying.committed import shortened
from ferry.errors import count_of, span
from ferry.monitoring.watching import UNREACHABLE, FlowFrame

_COLOURS = {"up to date": "green", "following": "green", "copying": "cyan", "behind": "yellow", UNREACHABLE: "bold red"}

# A flow that is ill is not green, however little is left to copy.
_ILL = dict.fromkeys(("loss", "failing"), "bold red") | dict.fromkeys(("missing", "paused", "never_ran", "lagging"), "yellow")
# A panel counts as old when its look began more than two intervals and this time ago.
GRACE_SECONDS = 5.0
# Widths of the table of topics: its numbers, the space around its columns, and the least part of a name that is shown.
COLUMNS = ("records", "oldest", "headroom")
AROUND_COLUMNS = 17
LEAST_NAME = 12


def screen(frames: Iterable[FlowFrame], interval: float, now: float, width: int) -> RenderableType:
    """`width`: of the terminal, in cells."""
    head = Text(f"ferry watch   {_clock(now)}   every {interval:g} s   q or Ctrl-C: leave", style="dim")
    panels: list[RenderableType] = [*(_panel(entry, now, interval, width) for entry in frames)] or [Text("looking for the first time …")]
    return Group(head, *panels)


def one_line(entry: FlowFrame) -> str:
    if entry.state == UNREACHABLE:
        return f"{_clock(entry.at)} {entry.flow}: {UNREACHABLE} since {_clock(entry.since)}: {entry.problem}"
    parts = [entry.verdict, f"copied {_rate(entry.copied_rate)}", f"headroom {_headroom(entry)}"]
    parts += [entry.state] if entry.state in {"copying", "following"} else []
    first = entry.at == entry.since  # the first look that found this state; the lines after it need not repeat the outage
    parts += [f"answers again after {_span(entry.outage_seconds)}"] if first and entry.outage_seconds is not None else []
    parts += [f"next: {entry.next_step}"] if entry.next_step else []
    return f"{_clock(entry.at)} {'; '.join([*parts, *entry.warnings])}"


def _panel(entry: FlowFrame, now: float, interval: float, width: int) -> Panel:
    colour, age = _ILL.get(entry.health, _COLOURS[entry.state]), now - entry.at
    ill = f"{entry.word or entry.health.replace('_', ' ')}, " if entry.health in _ILL else ""
    # While a look hangs, the panel is old: nobody knows whether the state lasts.
    old = age > 2 * interval + GRACE_SECONDS
    title = Text(f"{entry.flow}: {ill}{entry.state} for {_span(max(0.0, (entry.at if old else now) - entry.since))}", style=colour)
    if old:
        title.append(f", as it was {_span(age)} ago", "bold yellow")
    body: list[RenderableType]
    if entry.state == UNREACHABLE:
        body = [Text(entry.problem), Text("trying again; older numbers are not shown, because they may be wrong now", "dim")]
    else:
        body = [
            Text(entry.verdict),
            _facts(entry),
            *([_topics(entry, width)] if entry.topics else ()),
            *(Text(text, "yellow") for text in entry.warnings),
        ]
        if entry.next_step:
            body.append(Text(f"next: {entry.next_step}", "bold"))
        if entry.outage_seconds is not None:
            body.append(Text(f"answers again after {_span(entry.outage_seconds)}", "green"))
    return Panel(Group(*body), title=title, title_align="left", border_style=colour)


def _facts(entry: FlowFrame) -> Table:
    left = "" if entry.left_seconds is None else f", {_span(entry.left_seconds)} to go"
    oldest = f", oldest {_span(entry.lag_seconds)}" if entry.lag_seconds >= 0 else ""
    run, told = entry.run, "no run yet"
    if run is not None:
        records = "" if run.get("records") is None else f", {count_of(run['records'], 'record')}"
        told = f"last run {run.get('state') or '?'} ({run['run_id']}{records})"
    grid = Table.grid(padding=(0, 2))
    for name, value in (
        ("lag", f"{count_of(entry.lag_records, 'record')}{oldest}" if entry.lag_records else "no lag"),
        ("copied", _rate(entry.copied_rate) + left),
        ("produced", _rate(entry.produced_rate)),
        ("headroom", _headroom(entry)),
        ("run", told),
    ):
        grid.add_row(Text(name, style="dim"), Text(value))
    return grid


def _topics(entry: FlowFrame, width: int) -> Table:
    numbers = [(f"{topic.records:,}", _span(topic.seconds), _span(topic.headroom_seconds)) for topic in entry.topics]
    taken = sum(max(map(len, column)) for column in zip(COLUMNS, *numbers, strict=True))
    left = max(LEAST_NAME, width - taken - AROUND_COLUMNS)
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", title_justify="left")
    drawn.add_column(f"biggest of {count_of(entry.lagging_topics, 'topic')} with lag")
    for name in COLUMNS:
        drawn.add_column(name, justify="right", no_wrap=True)
    for topic, cells in zip(entry.topics, numbers, strict=True):
        drawn.add_row(Text(shortened(topic.topic, left), no_wrap=True), *cells)
    return drawn


def _headroom(entry: FlowFrame) -> str:
    return _span(entry.headroom_seconds) if entry.lag_records else "nothing waits"


def _rate(rate: float | None) -> str:
    return "…" if rate is None else f"{rate:,.0f} records/s"


def _span(seconds: float | None) -> str:
    return "unlimited" if seconds is None else "?" if seconds < 0 else span(seconds)


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
