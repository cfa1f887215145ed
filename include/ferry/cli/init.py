"""`ferry init`: asks for two clusters, tries both connections, and writes an mm2.properties with comments."""

from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.copies import AsJson
from ferry.cli.output import document, line, notice
from ferry.cli.prompts import Asker
from ferry.ending import interrupted_by_signals

INIT_VERSION = 1
DEFAULT_FILE = Path("mm2.properties")

File = Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")]
Alias = Annotated[str | None, typer.Option(help="Its alias. Names of remote topics begin with the alias of the source.")]
Servers = Annotated[str | None, typer.Option(help="Its servers: host:port, separated by commas.")]
Protocol = Annotated[str | None, typer.Option(help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.")]
Mechanism = Annotated[str | None, typer.Option(help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")]
User = Annotated[str | None, typer.Option(help="The user name.")]
Password = Annotated[str | None, typer.Option(help="Where its password is: '${env:NAME}' or '${file:/path:key}'; never the password.")]
Truststore = Annotated[str | None, typer.Option(help="PEM file of trusted authorities; default: those of the system.")]


def init(
    file: File = DEFAULT_FILE,
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
    """Ask for two clusters, try both connections, and write a first mm2.properties with comments. Ctrl-C leaves no file."""
    from ferry.cli.init_dialog import InitDialog, SideOptions  # noqa: PLC0415 - keeps `ferry --help` quick
    from ferry.cli.new_file import check_new_file, write_new_file  # noqa: PLC0415 - see above
    from ferry.config import load_config  # noqa: PLC0415 - see above
    from ferry.config.first_file import first_file  # noqa: PLC0415 - see above

    check_new_file(file, force=force)
    left = SideOptions("source", source, source_alias, source_protocol, source_mechanism, source_user, source_password, source_truststore)
    right = SideOptions("target", target, target_alias, target_protocol, target_mechanism, target_user, target_password, target_truststore)
    dialog = InitDialog(file, Asker(no_input), tests=not no_test)
    with interrupted_by_signals():  # temporary files may hold a password
        answers = dialog.ask(left, right, topics, schedule)
        dialog.look_at_rights(answers)
        write_new_file(file, first_file(answers), force=force)
    warnings = load_config(file).warnings
    if as_json:
        told = [entry.document() for entry in dialog.findings]
        document({"version": INIT_VERSION, "file": file, "flow": answers.flow, "findings": told, "warnings": warnings})
        return
    for text in warnings:
        notice(f"warning: {text}")
    line(f"{file}: written, readable by you only")
    line(f"next: ferry doctor {file}")
    line(f"      ferry plan {file} --flow '{answers.flow}'")
    line(f"      ferry run {file} --flow '{answers.flow}' --master inline")
