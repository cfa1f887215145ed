"""`ferry doctor`: finds what keeps Ferry from working, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ferry.cli.copies import AnyFlow, AsJson
from ferry.cli.output import complain, document, draw, line, notice

if TYPE_CHECKING:
    from ferry.doctor.finding import Finding

DOCTOR_VERSION = 1
_COLOURS = {"ok": "green", "warning": "yellow", "failure": "bold red"}

OptionalConfig = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="An mm2.properties file; without one, Ferry checks this machine only.")
]


def doctor(config: OptionalConfig = None, flow: AnyFlow = None, as_json: AsJson = False) -> None:
    """Check this machine, the clusters and the flows: versions, logins, rights, limits, clocks. Every problem comes with a fix."""
    from ferry.doctor.diagnosis import diagnose  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.doctor.finding import Verdict, exit_code  # noqa: PLC0415 - see above

    findings = []
    for finding in diagnose(config, flow):
        findings.append(finding)
        if not as_json and (len(findings) == 1 or findings[-2].where != finding.where):
            notice(f"checking {finding.where} …")
    code = exit_code(findings)
    counts = {verdict.value: sum(entry.verdict is verdict for entry in findings) for verdict in Verdict}
    if as_json:
        checks = [entry.document() for entry in findings]
        document({"version": DOCTOR_VERSION, "config": config, "findings": checks, "counts": counts, "exit_code": code})
    else:
        _show(findings)
        line(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failure']} failures")
        for entry in findings:
            if entry.verdict is Verdict.FAILURE:
                complain(f"{entry.where}: {entry.check}: {entry.found}")
    raise typer.Exit(code)


def _show(findings: list[Finding]) -> None:
    for where in dict.fromkeys(entry.where for entry in findings):
        drawn = Table(title=where, title_justify="left", header_style="bold", box=SIMPLE_HEAD, expand=False)
        drawn.add_column("")
        drawn.add_column("check", no_wrap=True)
        drawn.add_column("found; what to do", overflow="fold")
        for entry in (entry for entry in findings if entry.where == where):
            told = Text(entry.found)
            if entry.fix:
                told.append(f"\n→ {entry.fix}", style="cyan")
            drawn.add_row(Text(entry.verdict.value, style=_COLOURS[entry.verdict.value]), entry.check, told)
        draw(drawn)
