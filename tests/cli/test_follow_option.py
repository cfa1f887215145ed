"""--follow takes a length of time, and wins over the property."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.cli import copies
from ferry.cli.options import follow_until
from ferry.copying.request import RunRequest
from ferry.errors import ArgumentError

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("usual", "text", "seconds"),
    [(0, "90", 90), (0, "90s", 90), (0, "30m", 1_800), (7, "2h", 7_200), (900, None, 900), (0, None, None), (900, "0", None)],
)
def test_until_when_a_run_follows(usual: int, text: str | None, seconds: int | None) -> None:
    flow: Any = SimpleNamespace(follow_seconds=usual)
    before = datetime.now(UTC)
    until = follow_until(flow, text)
    if seconds is None:
        assert until is None
    else:
        assert until is not None
        assert seconds <= (until - before).total_seconds() < seconds + 60


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5h", "30 m", "3d", "1" * 10])
def test_what_is_no_length_of_time_is_refused_by_name(text: str) -> None:
    flow: Any = SimpleNamespace(follow_seconds=0)
    with pytest.raises(ArgumentError, match=r"^--follow .* is not a length of time"):
        follow_until(flow, text)


@pytest.mark.parametrize("text", ["168h", "145h", "518401", "999999999h"])
def test_a_run_follows_no_longer_than_its_report_can_be_read(text: str) -> None:
    flow: Any = SimpleNamespace(follow_seconds=0)
    assert follow_until(flow, "144h") is not None
    with pytest.raises(ArgumentError, match=r"^--follow .* is too long: a run follows for at most 144h"):
        follow_until(flow, text)


@pytest.mark.parametrize(
    ("until", "follow", "follows"), [("latest", None, True), ("2026-01-01T00:00:00Z", None, False), ("latest", "0", False)]
)
def test_a_run_with_an_end_of_its_own_does_not_follow_by_the_property(
    monkeypatch: pytest.MonkeyPatch, until: str, follow: str | None, follows: bool
) -> None:
    asked: list[RunRequest] = []
    monkeypatch.setattr(copies, "load_flow", lambda *_: SimpleNamespace(follow_seconds=900))
    monkeypatch.setattr(copies, "carry_out", lambda _, __, request, *___, **____: asked.append(request))
    copies.run(Path("mm2.properties"), "A->B", until=until, follow=follow)
    assert (asked[0].follow_until is not None) == follows


def test_a_run_with_an_end_of_its_own_cannot_be_told_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "load_flow", lambda *_: SimpleNamespace(follow_seconds=0))
    with pytest.raises(ArgumentError, match="a run that follows has no end of an interval"):
        copies.run(Path("mm2.properties"), "A->B", until="2026-01-01T00:00:00Z", follow="30m")
