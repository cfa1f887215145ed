"""What commands print: names stay as they are, even where rich has a meaning for them."""

from __future__ import annotations

import json

import pytest

from ferry.cli.output import Aside, answer, complaint
from ferry.pipeline.tables import Table

pytestmark = pytest.mark.unit

TABLE = Table("A->B: [red]", ("group", "offset"), [("team[a]:100:", 12_000), ("other", None)])


def test_names_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    answer({}, [TABLE, "[b]:100:", Aside("mm2.properties:100: unknown key"), complaint("no [a]")], as_json=False)
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0] == ["A->B:", "[red]"]
    assert ["team[a]:100:", "12,000"] in lines
    assert ["other"] in lines
    assert lines[-1] == ["[b]:100:"]
    assert shown.err.splitlines() == ["mm2.properties:100: unknown key", "ferry: no [a]"]


def test_a_document_has_a_version_and_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answer({"flow": "A->B"}, [TABLE, Aside("aside")], as_json=True)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"version": 1, "flow": "A->B"}
    assert not shown.err
    answer({"version": 2}, [], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"version": 2}
