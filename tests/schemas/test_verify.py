"""`ferry verify --schemas`, and what `ferry doctor` says of registries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.schemas.registries import IDENTITY, Pair, pair

from ferry.doctor.finding import Verdict
from ferry.doctor.registries import registry_findings
from ferry.errors import ExitCode
from ferry.verify.registries import verify_schemas

pytestmark = pytest.mark.unit


def text(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": []})


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    with pair(tmp_path, monkeypatch, IDENTITY) as found:
        for name in ("A", "B", "C"):
            found.source.seed("a", text(name))
        found.source.seed("b", text("D"))
        yield found


def test_equal_sides(made: Pair) -> None:
    made.sync()
    report = verify_schemas(made.flow)
    assert (report.exit_code, report.differences, report.subjects, report.versions) == (ExitCode.DONE, (), 2, 4)
    assert report.lines()[-1] == "4 versions of 2 subjects: equal"
    assert json.loads(json.dumps(report.document()))["differences"] == []


def test_each_difference_is_named_with_its_next_step(made: Pair) -> None:
    made.sync()
    made.source.seed("c", text("E"))
    made.source.registry.delete_version("a", "2", False)
    made.source.registry.set_config("b", {"compatibility": "FULL"})
    made.target.registry.set_mode("z", "IMPORT", True)
    made.target.registry.register("z", {"schema": text("Z"), "id": 99, "version": 1})
    made.target.registry.set_mode("b", "IMPORT", True)
    made.target.registry.register("b", {"schema": text("Z"), "id": 99, "version": 7})
    report = verify_schemas(made.flow)
    assert {one.what: one.problem for one in report.differences} == {
        "subject c version 1": "it is not on the target",
        "subject a version 2": "it is soft-deleted at the source only",
        "subject b version 7": "only the target has it",
        "subject b": "config differs",
    }
    assert all(one.next_step for one in report.differences)
    assert report.exit_code is ExitCode.PARTLY_FAILED


def test_another_text_under_the_same_version(made: Pair) -> None:
    made.target.seed("a", text("Other"))
    (difference,) = [one for one in verify_schemas(made.flow).differences if one.what == "subject a version 1"][:1]
    assert "another schema under this version: text differ" in difference.problem


def test_doctor(made: Pair) -> None:
    made.source.api.exporters = ["link"]
    made.target.registry.set_mode(None, "READONLY", False)
    found = {(one.where, one.check): one for one in registry_findings(made.flow)}
    assert found["schema registry A", "not copied"].found == "1 exporter"
    assert found["schema registry B", "mode"].verdict is Verdict.FAILURE
    assert found["schema registry A", "answers"].verdict is Verdict.OK


def test_doctor_names_a_login_that_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pair(tmp_path, monkeypatch, users={"ferry": "secret"}) as made:
        refused = [one for one in registry_findings(made.flow) if one.verdict is Verdict.FAILURE]
        assert [(one.where, one.code) for one in refused] == [("schema registry B", ExitCode.UNREACHABLE)]
        assert "nobody: there is no login" in refused[0].found
