"""Limits are judged by the run that has the flow, not by one that followed and was taken over."""

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

pytestmark = pytest.mark.unit


class Played:
    """A run that copied, and then was taken over or not."""

    taken_over: str | None = None

    def __init__(self, *_: object) -> None:
        self.plan = SimpleNamespace(needs_copy=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def move_records(self, copy: Callable[[], object], _: object) -> None:
        copy()

    def was_taken_over(self) -> bool:
        return self.taken_over is not None

    def report(self) -> Any:
        return SimpleNamespace(exit_code=ExitCode.DONE, taken_over=self.taken_over, problems=list, document=dict)


@pytest.mark.parametrize("taken_over", [None, "newer", ""])
def test_only_a_run_that_has_the_flow_judges_limits_and_syncs(monkeypatch: pytest.MonkeyPatch, taken_over: str | None) -> None:
    done: list[str] = []

    def look_back(*_: object, judge: bool) -> ExitCode:
        done.extend(["judged"] * judge)
        return ExitCode.DONE

    monkeypatch.setattr(Played, "taken_over", taken_over)
    monkeypatch.setattr(pipeline, "Run", Played)
    flow: Any = SimpleNamespace(tasks_max=None)
    monkeypatch.setattr(copies, "copy_records", lambda *_, **__: ExitCode.DONE)
    monkeypatch.setattr(copies, "_sync", lambda _: done.append("synced") or [])
    monkeypatch.setattr(copies, "_look_back", look_back)
    for name in ("_warn", "answer", "report_parts"):
        monkeypatch.setattr(copies, name, lambda *_, **__: [])
    with pytest.raises(typer.Exit) as ended:
        copies.carry_out(Path("mm2.properties"), flow, RunRequest("A->B", "run"), copies.INLINE, None, as_json=False, syncs=True)
    assert ended.value.exit_code == ExitCode.DONE
    assert done == (["synced", "judged"] if taken_over is None else [])
