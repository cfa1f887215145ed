"""A run syncs schemas before it copies, and copies nothing if that fails."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.cli import copies
from ferry.ledger.sync_outcome import SyncFailure, SyncOutcome
from ferry.syncs.names import SyncName

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("failed", [False, True])
def test_a_failed_sync_of_schemas_stops_the_copy(failed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    failures = (SyncFailure("subject a version 1", "SchemasRefused", "id 1 means another schema"),) if failed else ()
    asked: list[SyncName] = []

    def sync(names: Iterable[SyncName]) -> Iterable[SyncOutcome]:
        asked.extend(names)
        return [SyncOutcome(sync="schemas", failed=failures)]

    flow = cast(Any, None)
    monkeypatch.setattr(copies, "not_enabled", lambda *_: "")
    done, stopped = copies._before(cast(Any, SimpleNamespace(sync=sync)), flow)
    assert (asked, len(done), stopped) == ([SyncName.SCHEMAS], 1, True if failed else None)
    assert ("no record is copied" in capsys.readouterr().err) is failed
    monkeypatch.setattr(copies, "not_enabled", lambda *_: "the flow has no registries")
    assert copies._before(cast(Any, SimpleNamespace(sync=sync)), flow) == ([], None)
