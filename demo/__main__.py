"""`make demo`: two clusters with sample topics, Airflow, three runs of the DAG, and a comparison of both sides.

    python -m demo up|down

`up` keeps what runs already, so a second one copies only what is new. `down` stops by recorded pid and start time and removes every file,
also after an interrupted `up`.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from tools.kafka.groups import next_records

from demo.airflow_api import AirflowApi, RunState
from demo.airflow_services import DemoAirflow
from demo.config import write_demo_config
from demo.story import BACKFILLED, LATE, OPEN, demo_flow, differences, include_late, is_new, missing_interval
from ferry.ending import run_and_end
from ferry.errors import ExitCode, FerryError
from ferry.sandbox.pair import SandboxStatus, down, up
from ferry.sandbox.sample_data import GROUP, GROUP_TOPIC, SampleSummary, load_sample_topics, read_in_part

DIRECTORY = Path(".ferry/demo")
DAG = "ferry.A.B"
# A whole run takes half a minute; a slow machine may need several times that.
RUN_SECONDS = 300.0
POLL_SECONDS = 1.0

app = typer.Typer(help="The demo.", no_args_is_help=True, pretty_exceptions_enable=False)
console = Console(highlight=False)


class DemoFailed(FerryError):
    """The demo's run did not succeed."""


@app.command("up")
def demo_up() -> None:
    """Start everything, run the DAG (the first time with a history), compare."""
    directory = DIRECTORY.resolve()
    with _working("starting two Kafka clusters"):
        clusters = up(directory / "clusters")
        config = write_demo_config(directory / "mm2.properties", clusters)
    with _working("writing sample records: codecs, headers, tombstones, transactions with aborted ones"):
        summary = load_sample_topics(clusters.source, seed=time.time_ns())
        read_in_part(clusters.source, GROUP, GROUP_TOPIC)
    flow, new = demo_flow(config), is_new(clusters)
    if new:
        with _working(f"including {' and '.join(LATE)} late: their older halves are a gap"):
            include_late(flow, clusters)
    airflow = DemoAirflow(directory / "airflow", config)
    with _working("starting Airflow"):
        airflow.start()
    with AirflowApi(airflow.url, airflow.user, airflow.password) as api:
        api.wait_for_dag(DAG)
        _show(_run(api, api.unpause(DAG) if new else api.trigger(DAG)), api, summary)
        if new:
            more = load_sample_topics(clusters.source, seed=time.time_ns(), records=500)
            _show(_run(api, api.trigger(DAG)), api, more)
            started, ended = missing_interval(flow, BACKFILLED)
            console.print(f"a run over the missing time of {BACKFILLED}, as the page's Backfill button starts one:")
            _show(_run(api, api.trigger_interval(DAG, started, ended, BACKFILLED)), api, None)
    _compare(clusters)
    _compare_group(clusters)
    console.print(f"\n[bold]Ferry's page[/]  {airflow.url}/plugin/ferry")
    if new:
        console.print(
            f"              Coverage of [bold]{BACKFILLED}[/] has a gap that was backfilled, that of [bold]{OPEN}[/] one for you to close"
        )
    console.print(f"[bold]Airflow[/]       {airflow.url}/dags/{DAG}")
    console.print(f"[bold]Log in[/]        as [bold]{airflow.user}[/] with password [bold]{airflow.password}[/]")
    console.print(f"[bold]Try[/]           .venv/bin/ferry status {_short(config)}")
    console.print("              make demo        once more: copies only what is new")
    console.print("              make demo-stop   removes everything")


@app.command("down")
def demo_down() -> None:
    """Stop everything and remove its files."""
    directory = DIRECTORY.resolve()
    DemoAirflow(directory / "airflow", directory / "mm2.properties").stop()
    down(directory / "clusters")
    shutil.rmtree(directory, ignore_errors=True)
    if directory.parent.exists() and not any(directory.parent.iterdir()):
        directory.parent.rmdir()
    console.print("the demo is stopped and removed")


def _run(api: AirflowApi, run: str) -> RunState:
    """Follow a run's tasks to its end."""
    deadline = time.monotonic() + RUN_SECONDS
    with _bar() as progress:
        bar = progress.add_task("the DAG runs", total=None)
        while time.monotonic() < deadline:
            state = api.run_state(DAG, run)
            tasks = "  ".join(f"{name} {outcome}" for name, outcome in state.tasks.items())
            progress.update(bar, description=f"{DAG}: {tasks}")
            if state.finished:
                progress.update(bar, description=f"{DAG}: {state.state}")
                return state
            time.sleep(POLL_SECONDS)
    raise DemoFailed(f"run {run} of {DAG} did not end within {RUN_SECONDS:.0f} s; see its log in the UI: {api.url}")


def _show(state: RunState, api: AirflowApi, written: SampleSummary | None) -> None:
    report = api.report(DAG, state.run_id)
    if state.state != "success" or report is None:
        raise DemoFailed(f"run {state.run_id} of {DAG} ended as {state.state}: {state.tasks}; see its log in the UI: {api.url}")
    table = Table("topic", "remote topic", "partitions", "records", "bytes", title=f"copied by {state.run_id}", title_justify="left")
    by_topic: dict[tuple[str, str], list[dict[str, int]]] = {}
    for entry in report["partitions"]:
        by_topic.setdefault((entry["topic"], entry["remote_topic"]), []).append(entry)
    for (topic, remote), entries in by_topic.items():
        records, size = sum(entry["records"] for entry in entries), sum(entry["bytes"] for entry in entries)
        table.add_row(topic, remote, str(len(entries)), f"{records:,}", f"{size:,}")
    console.print(table)
    totals = report["totals"]
    told = f"{totals['records']:,} records copied in {totals['seconds']:.1f} s"
    if written is not None:
        told += f"; {written.records:,} were written just now, {written.aborted:,} more in aborted transactions, which no reader may see"
    console.print(told)


def _compare(clusters: SandboxStatus) -> None:
    with _working("comparing both sides with a client that shares no code with Ferry"):
        told, topics, records = differences(clusters)
    if told:
        raise DemoFailed(f"both sides differ: {told[:3]}")
    console.print(f"[green]equal[/]: {records:,} records in {topics} topics, record by record")


def _compare_group(clusters: SandboxStatus) -> None:
    here, there = next_records(clusters.source, GROUP, GROUP_TOPIC), next_records(clusters.target, GROUP, f"A.{GROUP_TOPIC}")
    if here != there:
        raise DemoFailed(f"group {GROUP} would not go on at the same records of {GROUP_TOPIC} on both sides")
    console.print(f"[green]equal[/]: group {GROUP} reads on at B with the very records that it would have read next at A")


def _working(text: str) -> Progress:
    progress = _bar()
    progress.add_task(text, total=None)
    return progress


def _bar() -> Progress:
    return Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def main() -> None:
    """Entry point; errors are one line."""
    try:
        app()
    except FerryError as problem:
        print(f"ferry: {type(problem).__name__}: {problem}", file=sys.stderr)  # noqa: T201 - plain, for scripts
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        print("ferry: interrupted; make demo-stop removes what was started", file=sys.stderr)  # noqa: T201 - plain, for scripts
        sys.exit(ExitCode.OTHER)


if __name__ == "__main__":
    run_and_end(main)
