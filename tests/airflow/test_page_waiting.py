"""What the page's routes wait for: what was never read, and what was read long ago; for nothing else."""

from __future__ import annotations

import asyncio
import time
import warnings
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.page.problem import Problem
from ferry.page.reads import ReadName
from ferry.page.snapshots import Snapshot

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in conftest.py: Airflow and its dependencies warn about each other
    import airflow.api_fastapi.app  # noqa: F401 - before what it imports itself

    from ferry.airflow import page

pytestmark = pytest.mark.airflow


GONE = Problem("ClusterUnreachable", "gone", "wait")


@pytest.mark.parametrize("anew", [False, True], ids=["", "anew"])
@pytest.mark.parametrize(
    ("age", "problem", "waits"),
    [(None, None, True), (3600, None, True), (40, None, False), (3600, GONE, False)],
    ids=["never read", "read long ago", "read lately", "a cluster is gone"],
)
def test_a_route_waits_for_a_new_read_of_old_data(age: int | None, problem: Problem | None, waits: bool, anew: bool) -> None:
    known = Snapshot({"rows": "old"}, time.time() - age, problem, True) if age else Snapshot[Any](refreshing=True)
    new = Snapshot({"rows": "new"}, time.time())
    future: Future[Snapshot[Any]] = Future()
    looks, forced = iter([(known, future), (new, None)]), []

    def look(*_: object, again: bool = False) -> Any:
        forced.append(again)
        return next(looks)

    state = SimpleNamespace(service=SimpleNamespace(look=look))
    headers = {"Cache-Control": "no-cache"} if anew else {}
    request, facts = SimpleNamespace(app=SimpleNamespace(state=state), headers=headers), SimpleNamespace(flow="A->B")

    async def asked() -> Snapshot[Any]:
        asyncio.get_running_loop().call_later(0.05, future.set_result, new)
        return await page._read(cast(Any, request), cast(Any, facts), ReadName.OVERVIEW)

    assert (asyncio.run(asked()) is new) is (waits or anew)
    assert forced[0] is anew
    assert forced[1:] in ([], [False])
