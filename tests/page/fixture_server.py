"""The Ferry page with made-up flows, on 127.0.0.1: the product's own app and routes, with what they read and who asks put in.

    python -m tests.page.fixture_server PORT

A process of its own, for it imports Airflow and can be killed. The cookie `stage=SCENARIO.ROLE.NUMBER` says which scenario of
scenarios.py a browser sees, and as whom (`anonymous` is not logged in); each number has a stage of its own. Airflow's API is there as far
as the page uses it: runs are taken by Airflow's own model of the request, listed at /fixture/posted, and close the gap of their topic.
"""

from __future__ import annotations

import sys
import time
from contextvars import ContextVar
from http.cookies import SimpleCookie
from typing import Any

import uvicorn
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI, HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.page.scenarios import SCENARIOS, Stage

import ferry.airflow.page as product
from ferry.airflow.page_flows import Known
from ferry.page.readers import Outcome
from ferry.page.reads import ReadName

HERE = "127.0.0.1"
NO_STAGE = "healthy.anonymous.0"
STAGES: dict[str, Stage] = {}
asked: ContextVar[str] = ContextVar("asked", default=NO_STAGE)


def stage() -> Stage:
    """The world of whoever asks."""
    name = asked.get()
    if name not in STAGES:
        STAGES[name] = SCENARIOS[name.split(".")[0]]()
    return STAGES[name]


def role() -> str:
    """As whom."""
    return asked.get().split(".")[1]


def user() -> SimpleAuthManagerUser:
    """In place of Airflow's login."""
    if role() == "anonymous":
        raise HTTPException(401, "Not authenticated")
    return SimpleAuthManagerUser(username=role(), role=role())


class Cookies:
    """ASGI middleware: notes the stage."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"cookie", b"").decode()
        found = SimpleCookie(given).get("stage")
        asked.set(NO_STAGE if found is None else found.value)
        await self._app(scope, receive, send)


class StagedFlows:
    """As ServerFlows."""

    def known(self) -> Known:
        """The flows."""
        return stage().known


class StagedService:
    """As PageService."""

    def look(self, flow: str, name: ReadName, argument: str = "", *, again: bool = False) -> Outcome:
        """What is known now."""
        return stage().look(flow, name, argument, again=again)


app = FastAPI()
app.add_middleware(Cookies)


@app.get("/fixture/posted")
async def posted() -> list[dict[str, Any]]:
    """What was asked of Airflow."""
    return stage().posted


@app.post("/fixture/read")
async def read() -> None:
    """The first reading has ended."""
    stage().unread = False


@app.get("/api/v2/dags/{dag_id}")
async def dag(dag_id: str) -> dict[str, Any]:
    """Whether a DAG is on."""
    user()
    return {"dag_id": dag_id, "is_paused": stage().paused}


@app.post("/api/v2/dags/{dag_id}/dagRuns")
async def trigger(dag_id: str, body: TriggerDAGRunPostBody) -> dict[str, Any]:
    """Start a run."""
    if user().role == "viewer":
        raise HTTPException(403, "Forbidden")
    run = {**body.model_dump(mode="json"), "dag_id": dag_id, "dag_run_id": f"manual__{len(stage().posted)}", "posted": time.monotonic()}
    stage().posted.append(run)
    return {**run, "state": "queued"}


@app.get("/api/v2/dags/{dag_id}/dagRuns/{run_id}")
async def run(dag_id: str, run_id: str) -> dict[str, Any]:
    """How far it is."""
    user()
    for entry in stage().posted:
        if (entry["dag_id"], entry["dag_run_id"]) == (dag_id, run_id):
            return {**entry, "state": stage().state(entry)}
    raise HTTPException(404, f"no run {run_id}")


def main() -> None:
    """Serve until killed."""
    product.may_read = product.may_read_runs = lambda *_: True  # type: ignore[assignment]
    product.may_trigger = lambda by, _: by.role != "viewer"  # type: ignore[assignment,attr-defined]
    product.may_read_errors = lambda by: by.role != "viewer"  # type: ignore[assignment,attr-defined]
    product.ferry_dags = dict
    product.is_paused = lambda _: stage().paused
    product.dag_runs = lambda dag_id, limit: stage().dag_runs(dag_id, limit)
    page = product.page_app()
    page.state.flows, page.state.service = StagedFlows(), StagedService()
    page.dependency_overrides[get_user] = user
    app.mount("/ferry", page)
    uvicorn.run(app, host=HERE, port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
