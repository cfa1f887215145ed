"""The Ferry page with made-up flows, on 127.0.0.1: the product's own app and routes, with what they read and who asks put in.

    python -m tests.page.fixture_server PORT

A process of its own, for it imports Airflow and can be killed. The cookie `stage=SCENARIO.ROLE.NUMBER` says which scenario of
scenarios.py a browser sees, and as whom (`anonymous` is not logged in); each number has a stage of its own. Airflow's API is there as far
as the page uses it: requests are taken by Airflow's own models. Runs are listed at /fixture/posted, and close the gap of their topic; what
else was changed is listed at /fixture/changed.
"""

from __future__ import annotations

import sys
import time
from contextvars import ContextVar
from http.cookies import SimpleCookie
from typing import Any

import uvicorn
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.datamodels.dag_run import DAGRunClearBody, DAGRunPatchBody, TriggerDAGRunPostBody
from airflow.api_fastapi.core_api.datamodels.dags import DAGPatchBody
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.page import made_up_reads as made_up
from tests.page.scenarios import SCENARIOS, Stage

import ferry.airflow.page as product
from ferry.airflow.page_flows import Known
from ferry.airflow.recovering import document_of
from ferry.config.in_force import InForce
from ferry.page.documents import RIGHTS
from ferry.page.reads import ReadName
from ferry.page.snapshots import Outcome

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

    def in_force(self, flow: str) -> tuple[InForce, ...]:
        """The flow's properties."""
        return made_up.in_force_of(flow)


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


@app.get("/fixture/changed")
async def changed() -> list[dict[str, Any]]:
    """What was changed in Airflow."""
    return stage().changed


@app.post("/fixture/read")
async def read() -> None:
    """The first reading has ended."""
    stage().unread = False


@app.get("/api/v2/dags/{dag_id}")
async def dag(dag_id: str) -> dict[str, Any]:
    """Whether a DAG is on."""
    user()
    return {"dag_id": dag_id, "is_paused": stage().paused}


def change(what: str, dag_id: str, body: BaseModel) -> None:
    """Note a change, if the user may make it."""
    if user().role == "viewer":
        raise HTTPException(403, "Forbidden")
    stage().changed.append({"what": what, "dag": dag_id, **body.model_dump(mode="json", exclude_unset=True)})


@app.patch("/api/v2/dags/{dag_id}")
async def patch_dag(dag_id: str, body: DAGPatchBody) -> dict[str, Any]:
    """Pause or unpause it."""
    change("dag", dag_id, body)
    stage().paused = body.is_paused
    return {"dag_id": dag_id, "is_paused": body.is_paused}


@app.patch("/api/v2/dags/{dag_id}/dagRuns/{run_id}")
async def patch_run(dag_id: str, run_id: str, body: DAGRunPatchBody) -> dict[str, Any]:
    """Stop it, or write its note."""
    change(run_id, dag_id, body)
    stage().notes[run_id] = body.note or ""
    if body.state is not None:
        stage().end(run_id, body.state.value)
    return {"dag_run_id": run_id, "state": body.state}


@app.post("/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear")
async def clear(dag_id: str, run_id: str, body: DAGRunClearBody) -> dict[str, Any]:
    """Have it run again."""
    change(run_id, dag_id, body)
    stage().end(run_id, "queued")
    return {"dag_run_id": run_id, "state": "queued"}


@app.post("/api/v2/dags/{dag_id}/dagRuns")
async def trigger(dag_id: str, body: TriggerDAGRunPostBody) -> dict[str, Any]:
    """Start a run."""
    if user().role == "viewer":
        raise HTTPException(403, "Forbidden")
    run = {**body.model_dump(mode="json"), "dag_id": dag_id, "dag_run_id": f"manual__{len(stage().posted)}", "posted": time.monotonic()}
    stage().posted.append(run)
    return {**run, "state": "queued"}


RUN = "/api/v2/dags/{dag_id}/dagRuns/{run_id}"


@app.get(f"{RUN}/taskInstances")
async def tasks(dag_id: str, run_id: str) -> dict[str, Any]:
    """How far each task is."""
    return {"task_instances": [{"task_id": name, "state": state or None} for name, state in stage().tasks_of(run_id).items()]}


@app.get(f"{RUN}/taskInstances/{{task}}/-1/hitlDetails")
async def question(dag_id: str, run_id: str, task: str) -> dict[str, Any]:
    """What a task asks."""
    return {"subject": f"A->B: failover: write these groups? ({task})"}


@app.get(f"{RUN}/taskInstances/plan_groups/xcomEntries/return_value")
async def plan(dag_id: str, run_id: str) -> dict[str, Any]:
    """What plan_groups has left."""
    return {"key": "return_value", "value": {"document": document_of(made_up.recovery_plan())}}


@app.get("/api/v2/dags/{dag_id}/dagRuns/{run_id}")
async def run(dag_id: str, run_id: str) -> dict[str, Any]:
    """How far it is."""
    user()
    for entry in stage().posted:
        if (entry["dag_id"], entry["dag_run_id"]) == (dag_id, run_id):
            return {**entry, "state": stage().state(entry)}
    for found in stage().ended:
        if found.run_id == run_id:
            return {"dag_run_id": run_id, "state": found.state, "note": stage().notes.get(run_id, "What somebody wrote")}
    raise HTTPException(404, f"no run {run_id}")


def main() -> None:
    """Serve until killed."""
    product.may_read = product.may_read_runs = lambda *_: True  # type: ignore[assignment]
    product.may_trigger = lambda by, _: by.role != "viewer"  # type: ignore[assignment,attr-defined]
    product.rights = lambda by, *_: dict.fromkeys(RIGHTS, by.role != "viewer")  # type: ignore[assignment,attr-defined]
    product.may_read_errors = lambda by: by.role != "viewer"  # type: ignore[assignment,attr-defined]
    product.ferry_dags = lambda: dict(stage().dags)
    product.is_paused = lambda _: stage().paused
    product.dag_runs = lambda dag_id, limit: stage().dag_runs(dag_id, limit)
    page = product.page_app()
    page.state.flows, page.state.service = StagedFlows(), StagedService()
    page.dependency_overrides[get_user] = user
    app.mount("/ferry", page)
    uvicorn.run(app, host=HERE, port=int(sys.argv[1]), log_level="warning")


if __name__ == "__main__":
    main()
