"""Commands for the time before the first run: `ferry init`, `ferry import`, `ferry doctor`, `ferry acls` and `ferry sandbox`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferry.cli.options import AnyFlow, AsJson, Config, FlowName, load_flow
from ferry.cli.output import Aside, Part, answer, complaint, notice
from ferry.cli.prompts import Asker
from ferry.clusters.net.partitions import grouped
from ferry.doctor.finding import Finding, Verdict, exit_code
from ferry.ending import interrupted_by_signals
from ferry.errors import ArgumentError, count_of
from ferry.pipeline.tables import Table

if TYPE_CHECKING:
    from ferry.imports.importing import Imported
    from ferry.sandbox.pair import SandboxStatus

NEW_FILE, SANDBOX = Path("mm2.properties"), Path(".ferry/sandbox")
_MOUNTED = "/etc/ferry/secrets"
FILES_HELP = "A connector's JSON or properties, a Strimzi resource, a MirrorMaker 1 command line in a script, or an mm2.properties."

Alias = Annotated[str | None, typer.Option(help="Alias of this cluster. Names of remote topics begin with the alias of the source.")]
Servers = Annotated[str | None, typer.Option(help="Servers of this cluster: host:port, separated by commas.")]
Protocol = Annotated[str | None, typer.Option(help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")]
Mechanism = Annotated[str | None, typer.Option(help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")]
User = Annotated[str | None, typer.Option(help="User name for the login.")]
Password = Annotated[
    str | None, typer.Option(help="Where the password is: '${env:NAME}' or '${file:/path:key}'; never the password itself.")
]
Truststore = Annotated[str | None, typer.Option(help="PEM file of trusted authorities; default: those of the system.")]

OptionalConfig = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG]", help="An mm2.properties file; without one, Ferry checks this machine only.")
]

InAirflow = Annotated[bool, typer.Option("--airflow", help="Also check the Airflow of this Python, and say the next step to a green run.")]

Directory = Annotated[Path, typer.Option(help="Where the clusters keep their data and logs.")]

sandbox = typer.Typer(help="Two real Kafka clusters on this machine, to try Ferry.", no_args_is_help=True)


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = NEW_FILE,
    source: Servers = None,
    target: Servers = None,
    source_alias: Alias = None,
    target_alias: Alias = None,
    source_protocol: Protocol = None,
    target_protocol: Protocol = None,
    source_mechanism: Mechanism = None,
    target_mechanism: Mechanism = None,
    source_user: User = None,
    target_user: User = None,
    source_password: Password = None,
    target_password: Password = None,
    source_truststore: Truststore = None,
    target_truststore: Truststore = None,
    topics: Annotated[str | None, typer.Option(help="Names and Java regular expressions, separated by commas.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Cron expression in UTC for Airflow; '' for none.")] = None,
    no_input: Annotated[bool, typer.Option("--no-input", help="Ask nothing; use the defaults of missing options.")] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not connect to the clusters.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask for two clusters, try both connections, and write a first mm2.properties with comments. After Ctrl-C there is no file."""
    from ferry.cli.init_dialog import InitDialog, SideOptions
    from ferry.cli.new_file import check_new_file, write_new_file
    from ferry.config import load_config
    from ferry.config.first_file import first_file

    check_new_file(file, force=force)
    left = SideOptions("source", source, source_alias, source_protocol, source_mechanism, source_user, source_password, source_truststore)
    right = SideOptions("target", target, target_alias, target_protocol, target_mechanism, target_user, target_password, target_truststore)
    dialog = InitDialog(file, Asker(no_input), tests=not no_test)
    with interrupted_by_signals():  # temporary files may hold a password
        answers = dialog.ask(left, right, topics, schedule)
        dialog.look_at_rights(answers)
        write_new_file(file, first_file(answers), force=force)
    warnings = load_config(file).warnings
    told = [entry.document() for entry in dialog.findings]
    parts = [
        *(Aside(f"warning: {text}") for text in warnings),
        f"{file}: written, readable by you only",
        f"next: ferry doctor {file}",
        f"      ferry plan {file} --flow '{answers.flow}'",
        f"      ferry run {file} --flow '{answers.flow}' --master inline",
    ]
    answer({"file": file, "flow": answers.flow, "findings": told, "warnings": warnings}, parts, as_json=as_json)


def import_config(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES_HELP)],
    to: Annotated[Path, typer.Option(help="The file to write.")] = NEW_FILE,
    secrets: Annotated[str, typer.Option(help="The directory into which Kubernetes' Secrets will be mounted, one folder each.")] = _MOUNTED,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make one mm2.properties of the files that configure another replicator, and say what became of each entry. Connects to no cluster."""
    from ferry.cli.new_file import check_new_file, write_new_file
    from ferry.imports.importing import Fate, import_files
    from ferry.imports.rendering import rendered

    check_new_file(to, force=force)
    if any(file.exists() and to.exists() and file.samefile(to) for file in files):
        raise ArgumentError(f"{to} is one of the files to import, and would be overwritten: give another one with --to")
    imported = import_files(files, PurePosixPath(secrets))
    write_new_file(to, rendered(imported, files), force=force)
    counts = {fate.value: sum(row.fate is fate for row in imported.rows) for fate in Fate}
    content = {
        "file": to,
        "entries": [{**asdict(row), "fate": row.fate.value} for row in imported.rows],
        "counts": counts,
        "flows_switched_off": sorted(imported.off),
        "missing": imported.missing,
    }
    answer(content, _import_parts(imported, to, counts), as_json=as_json)


def _import_parts(imported: Imported, to: Path, counts: dict[str, int]) -> Iterator[Part]:
    from ferry.imports.importing import Fate

    for fate in Fate:
        cells = [(f"{Path(row.path).name}:{row.line}", row.key, row.becomes, row.why) for row in imported.rows if row.fate is fate]
        if cells:
            yield Table(fate.value, ("where", "entry", "becomes", "why"), cells)
    yield f"{to}: written, readable by you only; {', '.join(f'{count} {name}' for name, count in counts.items())}"
    yield from (Aside(f"warning: the file is not complete: {text}") for text in imported.missing)
    if imported.off:
        flows = ", ".join(sorted(imported.off))
        yield Aside(f"warning: {flows}: switched off, because of entries that cannot be kept: look for NOT KEPT in {to}")
    yield f"next: ferry doctor {to}"


def doctor(config: OptionalConfig = None, flow: AnyFlow = None, in_airflow: InAirflow = False, as_json: AsJson = False) -> None:
    """Check this machine, the clusters and the flows: versions, logins, rights, limits, clocks. Every problem comes with a fix."""
    from ferry.doctor.airflow_checks import next_step
    from ferry.doctor.diagnosis import diagnose, diagnose_airflow

    findings: list[Finding] = []
    for finding in chain(diagnose(config, flow), diagnose_airflow(config, flow) if in_airflow else ()):
        findings.append(finding)
        if not as_json and (len(findings) == 1 or findings[-2].where != finding.where):
            notice(f"checking {finding.where} …")
    code = exit_code(findings)
    counts = {verdict.value: sum(entry.verdict is verdict for entry in findings) for verdict in Verdict}
    content: dict[str, Any] = {"config": config, "findings": [entry.document() for entry in findings], "counts": counts, "exit_code": code}
    if in_airflow:
        step = content["next"] = next_step(findings)
        last: Iterable[Part] = [f"next: {step}" if step else "A run is green: Ferry copies in this Airflow."]
    else:
        last = _last_parts(findings, counts, config, flow)
    answer(content, chain(_doctor_parts(findings, counts), last), as_json=as_json)
    raise typer.Exit(code)


def _doctor_parts(findings: list[Finding], counts: dict[str, int]) -> Iterator[Part]:
    for where, entries in grouped((entry.where, entry) for entry in findings).items():
        rows = [(entry.verdict, entry.check, f"{entry.found}\n→ {entry.fix}" if entry.fix else entry.found) for entry in entries]
        yield Table(where, ("", "check", "found; what to do"), rows)
    yield f"{counts['ok']} ok, {count_of(counts['warning'], 'warning')}, {count_of(counts['failure'], 'failure')}"


def _last_parts(findings: list[Finding], counts: dict[str, int], config: Path | None, flow: str | None) -> Iterator[Part]:
    from ferry.config import load_config

    failed = [entry for entry in findings if entry.verdict is Verdict.FAILURE]
    if failed:
        yield "Do not start a run yet. Mend the failures, then run ferry doctor again."
        settings = [entry for entry in findings if entry.verdict is Verdict.WARNING and entry.check == "service"]
        for entry in (*failed, *settings):
            yield complaint(f"{entry.verdict}: {entry.where}: {entry.check}: {entry.found}\n→ {entry.fix}")
    elif config is not None:
        flow = flow or next((entry.name for entry in load_config(config).flows), "A->B")
        warnings = count_of(counts["warning"], "warning")
        begin = f"You may start a run; read the {warnings} first." if counts["warning"] else "Nothing stands in the way of a run."
        yield f"{begin} next: ferry plan {config} --flow '{flow}', then ferry run {config} --flow '{flow}'"


def acls(
    config: Config,
    flow: FlowName,
    source_principal: Annotated[
        str | None, typer.Option(help="The principal that reads the source; default: the user of the login in the config.")
    ] = None,
    target_principal: Annotated[
        str | None, typer.Option(help="The principal that writes to the target; default: the user of the login in the config.")
    ] = None,
    command_config: Annotated[str | None, typer.Option(help="File with the administrator's client properties, for kafka-acls.")] = None,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Print also the rights that only failover, failback and cutover need.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the rights that the flow needs on both clusters, as kafka-acls commands. Connects to no cluster."""
    from ferry.permissions.commands import checked_principal, commands, in_one_line
    from ferry.permissions.required import required_rights

    settings = load_flow(config, flow)
    needed = required_rights(settings, recovery=recovery)
    sides: dict[str, dict[str, Any]] = {}
    lines: list[str] = []
    for name, cluster, given, rights in (
        ("source", settings.source, source_principal, needed.source),
        ("target", settings.target, target_principal, needed.target),
    ):
        option, principal = f"--{name}-principal", cluster.principal if given is None else given
        if principal is None:
            raise ArgumentError(f"the config does not say by which principal {cluster.alias} knows Ferry: give {option}, like User:ferry")
        principal = checked_principal(principal, option)
        told = list(commands(cluster.bootstrap, principal, rights, command_config))
        sides[name] = {
            "cluster": cluster.alias,
            "bootstrap": cluster.bootstrap,
            "principal": principal,
            "rights": [{**asdict(right.resource), "operation": right.operation, "needed_for": right.needed_for} for right in rights],
            "commands": [{"comment": comment, "command": command} for comment, command in told],
        }
        lines += [in_one_line(f"# {name} {cluster.alias}, for {principal}"), *chain.from_iterable(told)]
    lines += [in_one_line(f"# note: {text}") for text in needed.notes]
    answer({"flow": flow, **sides, "notes": list(needed.notes)}, lines, as_json=as_json)


@sandbox.command("up")
def up(directory: Directory = SANDBOX, as_json: AsJson = False) -> None:
    """Start both clusters, if they do not run, and write an mm2.properties for them."""
    from ferry.sandbox.pair import up as start

    _show(start(directory), as_json=as_json)


@sandbox.command("fill")
def fill(
    directory: Directory = SANDBOX,
    records: Annotated[int, typer.Option(min=100, max=1_000_000, help="About this number of records for each topic.")] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Write sample records into eight topics of cluster A. The group billing reads a part of them."""
    from ferry.sandbox.pair import fill as write

    filled = write(directory, records)
    told = Table("written to A", ("topic", "records"), [*filled.topics.items(), ("in aborted transactions", filled.aborted)])
    answer({**asdict(filled), "records": filled.records}, [told], as_json=as_json)


@sandbox.command("down")
def down(directory: Directory = SANDBOX, as_json: AsJson = False) -> None:
    """Stop both clusters and remove their data."""
    from ferry.sandbox.pair import down as stop

    _show(stop(directory), as_json=as_json)


@sandbox.command("status")
def status(directory: Directory = SANDBOX, as_json: AsJson = False) -> None:
    """Show which clusters run, and where."""
    from ferry.sandbox.pair import status as look

    _show(look(directory), as_json=as_json)


def _show(found: SandboxStatus, *, as_json: bool) -> None:
    content = asdict(found)
    answer(content, [Table("sandbox", ("what", "value"), [(name, str(value)) for name, value in content.items()])], as_json=as_json)
