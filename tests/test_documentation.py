"""The documentation names what exists: commands, options, exit codes, errors, files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ferry import errors
from ferry.cli.main import app
from ferry.cli.status_text import status_document
from ferry.clusters.logs.held_back import LastStableLag
from ferry.clusters.net.partitions import TopicPartition
from ferry.ledger.counters import Counters
from ferry.ledger.run_report import LossReport, PartitionFailure, PartitionReport, RunReport, Skipped
from ferry.monitoring.health import FlowHealth
from ferry.monitoring.lag import PartitionStatus
from ferry.monitoring.limits import BrokenLimit
from ferry.monitoring.missing import Missing
from ferry.monitoring.runs import empty_run, last_ended
from ferry.monitoring.verdict import Health

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Names that reports carry without a class of their own.
REPORTED_NAMES = frozenset({"RunUnfinished"})
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def sections(page: str) -> dict[str, str]:
    """Text of each heading, up to the next heading of any level."""
    pieces = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name. Groups are told by their `commands`: typer brings its own copy of click."""
    if hasattr(command, "commands"):
        for part, inner in command.commands.items():
            yield from commands(inner, f"{name} {part}")
    else:
        yield name, command


COMMANDS = dict(commands(get_command(app), "ferry"))
ERRORS = sorted(name for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, errors.FerryError))


def test_the_app_has_commands() -> None:
    assert {"ferry run", "ferry sandbox up"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_its_options_are_in_the_page(name: str) -> None:
    text = sections(read("docs/cli.md"))[name]
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts if option.startswith("-")} - {"--help"}
    assert "--json" in options
    assert {option for option in options if f"`{option}`" not in text} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_names_no_option_that_a_command_lacks(name: str) -> None:
    text = sections(read("docs/cli.md"))[name]
    named = set(re.findall(r"^\| `(-[\w-]+)`(?:, `-\w`)? \|", text, flags=re.MULTILINE))
    assert named <= {option for parameter in COMMANDS[name].params for option in parameter.opts}


def test_the_page_names_no_command_that_is_not_there() -> None:
    assert {heading for heading in sections(read("docs/cli.md")) if heading.startswith("ferry ")} == set(COMMANDS)


@pytest.mark.parametrize("code", errors.ExitCode)
def test_every_exit_code_is_in_the_table(code: errors.ExitCode) -> None:
    assert f"\n| {code.value} | `{code.name}` |" in sections(read("docs/cli.md"))["Exit codes"]


@pytest.mark.parametrize("name", [field.name for field in fields(RunReport)])
def test_every_field_of_the_run_report_is_explained(name: str) -> None:
    assert f"`{name}`" in sections(read("docs/cli.md"))["Run report"]


@pytest.mark.parametrize("name", [field.name for field in fields(PartitionReport) if field.name != "counters"] + list(Counters._fields))
def test_every_field_of_a_partition_is_explained(name: str) -> None:
    assert f"`{name}`" in sections(read("docs/cli.md"))["Run report"]


def names_in(document: Any) -> Iterator[str]:
    """Every key of a JSON document; not those of `syncs`, which are names of syncs."""
    for name, value in document.items() if isinstance(document, Mapping) else ():
        yield name
        yield from names_in(list(value.values()) if name == "syncs" else value)
    for entry in document if isinstance(document, list | tuple) else ():
        yield from names_in(entry)


def test_every_field_of_a_status_is_explained() -> None:
    groups, run = {"total": 1, "named": [{"what": "group g", "reason": "busy"}]}, {"run_id": "r", "since": "", "until": ""}
    sync = {"changes": 0, "skipped": 1, "failed": 1, "left_out": "", "why": {"error": "GroupFailed", "problem": "g"}, "held": groups}
    loss, failure = LossReport("t", 0, 1, 2, "expired"), PartitionFailure("t", 0, "NotAuthorized", "hidden")
    ended: dict[str, Any] = {**empty_run("r"), "state": "data lost", "losses": [asdict(loss)], "failed": [asdict(failure)]}
    known = FlowHealth(
        "A->B",
        (PartitionStatus("t", 0, "A.t", 0, 1, 1, 1, 1.0, None, None, 0),),
        (LastStableLag("t", 0, "A", "a:9092", TopicPartition("t", 0), 1, 2),),
        lacking=(Skipped("cluster A", "it is old"),),
        losses=(loss,),
        expired=(loss,),
        missing=(Missing("t", 0, 0, 1),),
        stopped=(failure,),
        broken=(BrokenLimit("ferry.alert.lag.records", "t", 2.0, 1.0),),
        left_out_records=1,
        following=run,
        gone=run,
        last_run=last_ended([{**ended, "topics": [{"topic": "t", "records": 1, "bytes": 1}], "syncs": {"groups": sync}}]),
        held_groups=groups,
    )
    document, page = status_document(known, 0.0), sections(read("docs/cli.md"))
    assert not [name for name, value in document.items() if value in ([], (), None, "") and name != "left_out"], "the test fills all"
    transactions = document.pop("open_transactions")
    assert [name for name in (*names_in(document), "open_transactions", "flows", "unread") if f"`{name}`" not in page["Status"]] == []
    assert [name for name in names_in(transactions) if f"`{name}`" not in page["Plan"]] == []


@pytest.mark.parametrize("health", Health)
def test_every_health_is_explained(health: Health) -> None:
    page = sections(read("docs/cli.md"))["Status"]
    assert f"`{health}`" in page.partition("| `health` |")[2].partition("\n")[0]


def test_the_order_of_exit_codes_and_the_dashboard_name_all_of_them() -> None:
    order = ", ".join(str(int(code)) for code in errors.EXIT_CODE_PRECEDENCE)
    assert f"the first of {order} wins" in read("docs/cli.md")
    board = read("monitoring/grafana/ferry.json")
    texts = {int(code): text for code, text in re.findall(r'"(\d)": \{\s*"text": "([a-z ]+)"', board)}
    assert {code: code.name.lower().replace("_", " ") for code in errors.ExitCode}.items() <= texts.items()


@pytest.mark.parametrize("name", [*ERRORS, *sorted(REPORTED_NAMES)])
def test_every_error_is_explained(name: str) -> None:
    assert len(sections(read("docs/troubleshooting.md"))[name].split()) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_resolve(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    headings = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in sections(page.read_text(encoding="utf-8"))}
    files = [target.split("#")[0] for target in targets if not target.startswith("#")]
    assert [name for name in files if not (page.parent / name).exists()] == []
    assert [anchor for anchor in targets if anchor.startswith("#") and anchor[1:] not in headings] == []


def test_readme_names_the_test_command_and_every_page() -> None:
    readme = read("README.md")
    assert "make test" in readme
    links = set(LINK.findall(readme))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= links
