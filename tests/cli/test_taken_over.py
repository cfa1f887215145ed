"""What a run still does that followed and was taken over, by another run or by a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import typer

from ferry.cli import copies
from ferry.copying.request import RunRequest
from ferry.errors import ExitCode
from ferry.pipeline import run as pipeline
from ferry.syncs.names import AFTER_THE_COPY

pytestmark = pytest.mark.unit


class Played:
    """A run that copied, and then was taken over or not."""

    by: str | None = None

    def __init__(self, *_: object) -> None:
        self.taken_over = lambda: self.by
        self.plan = SimpleNamespace(needs_copy=True, is_small=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def move_records(self, copy: Callable[[], object], _: object) -> None:
        copy()

    def report(self, **_: object) -> Any:
        return SimpleNamespace(exit_code=ExitCode.DONE, taken_over=self.by, problems=list, document=dict)


@pytest.mark.parametrize(("by", "does"), [(None, ["synced", "judged"]), ("newer", ["judged"]), ("", [])])
def test_a_run_that_was_taken_over_judges_limits_unless_a_command_did_it(
    monkeypatch: pytest.MonkeyPatch, by: str | None, does: list[str]
) -> None:
    done: list[str] = []

    def look_back(*_: object, judge: bool) -> ExitCode:
        done.extend(["judged"] * judge)
        return ExitCode.DONE

    monkeypatch.setattr(Played, "by", by)
    monkeypatch.setattr(pipeline, "open_run", Played)
    flow: Any = SimpleNamespace(tasks_max=None)
    monkeypatch.setattr(copies, "copy_records", lambda *_, **__: ExitCode.DONE)
    monkeypatch.setattr(copies, "_sync", lambda _, names: done.extend(["synced"] * (names == AFTER_THE_COPY)) or [])
    monkeypatch.setattr(copies, "not_enabled", lambda *_: "off")
    monkeypatch.setattr(copies, "_look_back", look_back)
    for name in ("_warn", "answer", "report_parts"):
        monkeypatch.setattr(copies, name, lambda *_, **__: [])
    with pytest.raises(typer.Exit) as ended:
        copies.carry_out(Path("mm2.properties"), flow, RunRequest("A->B", "run"), copies.INLINE, None, as_json=False, syncs=True)
    assert ended.value.exit_code == ExitCode.DONE
    assert done == does
