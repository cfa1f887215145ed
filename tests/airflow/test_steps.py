"""What a step of a run does if another run has taken the flow over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from ferry.airflow import steps
from ferry.airflow.flows import FlowReference

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize("step", ["check_limits", "sync"])
def test_what_the_newer_run_does_is_skipped(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    class TakenOver:
        def __init__(self, *_: object) -> None:
            self.was_taken_over = lambda: True

        def __enter__(self) -> TakenOver:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is open."""

    planned = {"dry_run": False, "needs_copy": True}
    monkeypatch.setattr(steps, "get_current_context", dict)
    monkeypatch.setattr(steps, "request_of", lambda *_: None)
    monkeypatch.setattr(steps, "flow_for_running", lambda _: SimpleNamespace())
    monkeypatch.setattr(steps, "Run", TakenOver)
    flow = FlowReference(Path("mm2.properties"), "A->B")
    with pytest.raises(AirflowSkipException, match="another run has taken the flow over"):
        steps.sync(flow, "groups", planned) if step == "sync" else steps.check_limits(flow, planned)
