"""`ferry`: the commands, and the place where errors become exit codes.

For a FerryError the command prints a line on stderr (`ferry: <class>: <what, where, what to change>`) and another with the next step, and
ends with the error's exit code. Any other exception is a defect of Ferry; `FERRY_TRACEBACK=1` shows its traceback.
"""

import gc
import os
import sys
from typing import Annotated, NoReturn

import typer

from ferry import __version__
from ferry.cli import changes, completing, copies, groups, legacy, moves, set_up, views, watch
from ferry.cli.options import Commands
from ferry.cli.output import complaint, line, notice
from ferry.ending import INTERRUPTED, run_and_end
from ferry.errors import ExitCode, FerryError

app = typer.Typer(
    name="ferry",
    cls=Commands,
    epilog="First steps: ferry init, ferry doctor mm2.properties, ferry plan mm2.properties --flow 'A->B', then ferry run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
OBJECTS_BETWEEN_COLLECTIONS = 100_000
SET_UP, COPY, LOOK = "Set up", "Copy", "Look"
GROUPS, REPAIR = "Consumer groups", "Move, repair, change over"

# What an interrupted command of these has committed stays.
COMMITTING = frozenset({"run", "backfill", "legacy", "sync", "seed", "failover", "failback", "cutover"})


def _tell_version(wanted: bool) -> None:
    if wanted:
        line(f"ferry {__version__}")
        raise typer.Exit


@app.callback()
def ferry(
    version: Annotated[bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Copies topics from one Kafka cluster to another, exactly once, in runs that end."""


# In the order of use; the help shows them so.
app.command("init", rich_help_panel=SET_UP)(set_up.init)
app.command("import", rich_help_panel=SET_UP)(set_up.import_config)
app.command("doctor", rich_help_panel=SET_UP)(set_up.doctor)
app.command("plan", rich_help_panel=SET_UP)(copies.plan)
app.command("acls", rich_help_panel=SET_UP)(set_up.acls)
app.add_typer(set_up.sandbox, name="sandbox", rich_help_panel=SET_UP)
app.command("completion", rich_help_panel=SET_UP)(completing.completion)
app.command("run", rich_help_panel=COPY)(copies.run)
app.command("backfill", rich_help_panel=COPY)(copies.backfill)
app.command("sync", rich_help_panel=COPY)(copies.sync)
app.command("legacy", rich_help_panel=COPY)(legacy.legacy)
app.command("status", rich_help_panel=LOOK)(views.status)
app.command("watch", rich_help_panel=LOOK)(watch.watch)
app.command("verify", rich_help_panel=LOOK)(views.verify)
app.command("ledger", rich_help_panel=LOOK)(views.ledger)
app.command("format", rich_help_panel=LOOK)(views.format_records)
app.command("translate", rich_help_panel=GROUPS)(groups.translate)
app.command("explain", rich_help_panel=GROUPS)(groups.explain)
app.add_typer(groups.client_app, name="client", rich_help_panel=GROUPS)
app.command("failover", rich_help_panel=REPAIR)(moves.failover)
app.command("failback", rich_help_panel=REPAIR)(moves.failback)
app.command("cutover", rich_help_panel=REPAIR)(moves.cutover)
app.command("ack-loss", rich_help_panel=REPAIR)(changes.acknowledge_losses)
app.command("seed", rich_help_panel=REPAIR)(changes.seed)
app.command("export-offsets", rich_help_panel=REPAIR)(changes.export_offsets)


def main() -> NoReturn:
    # Modules, and most of the data that a command reads, stay until the end. By default Python would look for garbage in them so often that
    # this takes a tenth of a short command's time.
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    run_and_end(_main)


def _main() -> None:
    try:
        if completing.COMPLETE_VARIABLE in os.environ:
            completing.answer_the_shell(app)
        app()
    except FerryError as problem:
        notice(complaint(problem.named))
        if problem.exit_code is not ExitCode.BAD_INPUT:  # its message says what to correct
            notice(f"next: {problem.next_step}")
        sys.exit(problem.exit_code)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:  # typer has made it of the KeyboardInterrupt
            notice(complaint(_interrupted()))
        raise
    except KeyboardInterrupt:
        notice(complaint(_interrupted()))
        sys.exit(INTERRUPTED)
    except Exception as problem:
        if os.environ.get("FERRY_TRACEBACK"):
            raise
        notice(complaint(f"unexpected {type(problem).__name__}: {problem} (a defect; FERRY_TRACEBACK=1 shows where)"))
        sys.exit(ExitCode.OTHER)


def _interrupted() -> str:
    if not COMMITTING.intersection(sys.argv[1:2]):
        return "interrupted"
    return "interrupted; what was committed stays, and the same command goes on there; ferry status says how far behind the flow is"


if __name__ == "__main__":
    main()
