"""`ferry`: the commands, and the one place where errors become exit codes.

Every FerryError is one line on stderr (`ferry: <class>: <what, where, what to change>`) and its exit code; anything else is a defect and
shows its traceback with `FERRY_TRACEBACK=1`.
"""

from __future__ import annotations

import logging
import os
import sys

import typer

from ferry.cli import changes, clients, copies, groups, legacy, proofs, rights, sandboxes, syncs, translations, views
from ferry.cli.output import complain
from ferry.errors import ExitCode, FerryError

app = typer.Typer(
    name="ferry",
    help="Exactly-once Kafka cross-cluster replication: bounded copies, exact positions, named losses.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.command("run")(copies.run)
app.command("backfill")(copies.backfill)
app.command("plan")(copies.plan)
app.command("legacy")(legacy.legacy)
app.command("sync")(syncs.sync)
app.command("status")(views.status)
app.command("translate")(translations.translate)
app.command("explain")(groups.explain)
app.command("verify")(proofs.verify)
app.command("ledger")(views.ledger)
app.command("format")(views.format_records)
app.command("acls")(rights.acls)
app.command("ack-loss")(changes.acknowledge_losses)
app.command("seed")(changes.seed)
app.add_typer(clients.app, name="client")
app.command("export-offsets")(changes.export_offsets)
app.add_typer(sandboxes.app, name="sandbox")


def main() -> None:
    """Entry point of the `ferry` script."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # its reconnects are expected and end in one error of ours
    try:
        app()
    except FerryError as problem:
        complain(f"{type(problem).__name__}: {problem}")
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        complain("interrupted; what was committed stays, the next run goes on there")
        sys.exit(130)
    except Exception as problem:
        if os.environ.get("FERRY_TRACEBACK"):
            raise
        complain(f"unexpected {type(problem).__name__}: {problem} (a defect; FERRY_TRACEBACK=1 shows where)")
        sys.exit(ExitCode.OTHER)


if __name__ == "__main__":
    main()
