"""The version has one home, `ferry.__version__`: every page that names the version names this one, and the changelog says what to do."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ferry import __version__
from ferry.page.documents import overview

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"\b(?:ferry(?:-executors)?:|Ferry |Version )(\d+\.\d+\.\d+)")
# Evidence names the version with which it was gathered.
FILES = [ROOT / "compose.yaml", ROOT / "mkdocs.yml", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# Words of an entry that takes something away or demands something.
DEMANDING = re.compile(r"` (?:is|are) gone|no longer|renamed|needs the extra|are extras|older release refuses")


def test_every_page_names_this_version() -> None:
    named = {file.relative_to(ROOT).as_posix(): set(NAMED.findall(file.read_text(encoding="utf-8"))) for file in FILES}
    assert {name: versions for name, versions in named.items() if versions - {__version__}} == {}
    assert {"compose.yaml", "mkdocs.yml", "SECURITY.md", "docs/containers.md", "docs/spark.md"} <= {name for name in named if named[name]}


def test_the_project_takes_the_version_from_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in settings["project"]
    assert settings["tool"]["hatch"]["version"]["path"] == "include/ferry/__init__.py"


def test_the_page_shows_this_version() -> None:
    assert overview([], 0)["release"] == __version__


def test_the_changelog_begins_with_this_version() -> None:
    first = re.findall(r"^## (.+)$", CHANGES, re.MULTILINE)[0]
    assert re.fullmatch(rf"{re.escape(__version__)}, (?:not released yet|\d{{4}}-\d\d-\d\d)", first)


def test_an_entry_that_demands_something_says_what_to_do() -> None:
    entries = [" ".join(entry.split()) for entry in re.split(r"^(?:- |#)", CHANGES, flags=re.MULTILINE)]
    demanding = [entry for entry in entries if DEMANDING.search(entry)]
    assert len(demanding) >= 3
    assert [entry for entry in demanding if "**To do:** " not in entry] == []
