"""The routes of the Ferry page: a FastAPI app that Airflow's api-server mounts at /ferry. Only GET, and every route needs a login.

A route checks the user's rights, waits a little if nothing was read yet, and calls pure functions (ferry.page.documents). It waits in the
event loop, so it blocks no thread of the server. Nothing here imports a Kafka client.
"""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response, status
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

import ferry.page
from ferry.airflow.page_dags import dag_runs, ferry_dags, is_paused, may_read, may_read_errors, may_read_runs, may_trigger, rights
from ferry.airflow.page_docs import DOCS, page_as_html
from ferry.airflow.page_flows import Known, ServerFlows, tell_no_dags, tell_unnamed, unnamed_dags
from ferry.airflow.recovery_params import COMMANDS
from ferry.ledger.run_summary import DAYS_KEPT
from ferry.page import documents
from ferry.page.documents import FlowView, PageFlow
from ferry.page.overview import SORTS
from ferry.page.readers import PageService
from ferry.page.reads import ReadName
from ferry.page.snapshots import Outcome, Snapshot
from ferry.policy.naming import LONGEST_TOPIC

STATIC = Path(ferry.page.__file__).parent / "static"
# A route waits this long for a first read; then the browser asks again.
FIRST_WAIT_SECONDS = 10.0
# The map waits this long for reads; a flow that hangs must not delay the others.
MAP_WAIT_SECONDS = 3.0
# The map shows the last run only; but Airflow may know newer runs than the runs topic.
NEWEST_RUNS = 20
# For data older than this a route waits MAP_WAIT_SECONDS for a new read, because it may be out of date.
OLD_SECONDS = 300.0
# A browser asks for one page of rows at a time.
MOST_ROWS = 500

TopicName = Annotated[str, Query(min_length=1, max_length=LONGEST_TOPIC)]
# Kafka has no limit for names of groups. A longer text is no name of a group.
GroupName = Annotated[str, Query(min_length=1, max_length=1024)]
Search = Annotated[str, Query(max_length=1024)]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
User = Annotated[BaseUser, Depends(get_user)]


def page_app() -> FastAPI:
    """The app. It reads files at the first request, and starts processes at the first read."""
    app = FastAPI(title="Ferry", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.flows = ServerFlows()
    app.state.service = PageService(app.state.flows.resolve)
    # The login is checked first, before parameters.
    app.include_router(api, prefix="/api", dependencies=[Depends(get_user), Depends(not_stored)])
    app.include_router(files, dependencies=[Depends(get_user)])
    return app


api = APIRouter()
files = APIRouter()


def not_stored(response: Response) -> None:
    """No cache may keep an answer: it is for one user, and an old one misleads."""
    response.headers["Cache-Control"] = "no-store"


def known_flows(request: Request) -> Known:
    found: Known = request.app.state.flows.known()
    return found


def readable_flow(user: User, known: Annotated[Known, Depends(known_flows)], flow: Annotated[str, Query(max_length=500)]) -> PageFlow:
    """The flow that the request names. 404: there is none, 403: the user may not read its DAG."""
    facts = next((facts for facts in known.flows if facts.flow == flow), None)
    if facts is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no enabled flow {flow}")
    if not may_read(user, facts.dag_id):
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"reading DAG {facts.dag_id} is not allowed")
    return facts


def readable_flows(user: User, known: Annotated[Known, Depends(known_flows)]) -> tuple[PageFlow, ...]:
    """All flows that the user may see."""
    return tuple(facts for facts in known.flows if may_read(user, facts.dag_id))


ReadableFlow = Annotated[PageFlow, Depends(readable_flow)]
ReadableFlows = Annotated[tuple[PageFlow, ...], Depends(readable_flows)]


@api.get("/overview")
async def overview(request: Request, user: User, flows: ReadableFlows, known: Annotated[Known, Depends(known_flows)]) -> dict[str, Any]:
    """The map: every flow with its health."""
    asked = [(facts, _ask(request, facts, ReadName.OVERVIEW), _ask(request, facts, ReadName.RUNS)) for facts in flows]
    await _reads(request, [outcome for _, *outcomes in asked for outcome in outcomes], MAP_WAIT_SECONDS)

    def answer() -> dict[str, Any]:
        views = [_view(request, user, facts, NEWEST_RUNS) for facts, *_ in asked]
        # Only users who may see flows, or import errors, may see why a config cannot be read: the message names its keys.
        problem = known.problem if flows or (not known.flows and may_read_errors(user)) else None
        dags = ferry_dags()
        unnamed = unnamed_dags(known, dags)
        problem = tell_unnamed({dag: text for dag, text in unnamed.items() if may_read(user, dag)}) or problem or tell_no_dags(flows, dags)
        return documents.overview(views, time.time(), problem)

    return await run_in_threadpool(answer)


@api.get("/topics")
async def topics(
    *,
    request: Request,
    facts: ReadableFlow,
    search: Search = "",
    sort: str = "topic",
    descending: bool = False,
    offset: Offset = 0,
    limit: Limit = 50,
) -> dict[str, Any]:
    if sort not in SORTS:
        raise HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, f"sort must be one of {', '.join(SORTS)}")
    snapshot = await _read(request, facts, ReadName.OVERVIEW)
    page = {"search": search, "sort": sort, "descending": descending, "offset": offset, "limit": limit}
    return await run_in_threadpool(lambda: documents.topics(snapshot, time.time(), **page))


@api.get("/partitions")
async def partitions(request: Request, facts: ReadableFlow, topic: TopicName) -> dict[str, Any]:
    return documents.partitions(await _read(request, facts, ReadName.OVERVIEW), time.time(), topic)


@api.get("/coverage")
async def coverage(request: Request, user: User, facts: ReadableFlow, topic: TopicName) -> dict[str, Any]:
    """What the ledger covers of one topic, and what is missing."""
    snapshot = await _read(request, facts, ReadName.COVERAGE, topic)
    return await run_in_threadpool(lambda: documents.coverage(_view(request, user, facts, NEWEST_RUNS), snapshot, time.time(), topic))


@api.get("/history")
async def history(request: Request, user: User, facts: ReadableFlow, days: Annotated[int, Query(ge=1, le=DAYS_KEPT)] = 7) -> dict[str, Any]:
    """Speed, delay, lag and headroom of each run."""
    await _read(request, facts, ReadName.RUNS)
    return await run_in_threadpool(lambda: documents.history(_view(request, user, facts, MOST_ROWS), time.time(), days))


@api.get("/runs")
async def runs(request: Request, user: User, facts: ReadableFlow, limit: Limit = 50) -> dict[str, Any]:
    await _read(request, facts, ReadName.RUNS)
    return await run_in_threadpool(lambda: documents.runs(_view(request, user, facts, limit), time.time(), limit))


@api.get("/progress")
async def progress(request: Request, user: User, facts: ReadableFlow) -> dict[str, Any]:
    """How far the run is that is under way."""
    snapshot = await _read(request, facts, ReadName.PROGRESS)
    return await run_in_threadpool(lambda: documents.progress(_view(request, user, facts, NEWEST_RUNS), snapshot, time.time()))


@api.get("/losses")
async def losses(request: Request, facts: ReadableFlow) -> dict[str, Any]:
    return documents.losses(await _read(request, facts, ReadName.OVERVIEW), time.time(), facts)


@api.get("/transactions")
async def transactions(request: Request, facts: ReadableFlow) -> dict[str, Any]:
    return documents.transactions(await _read(request, facts, ReadName.OVERVIEW), time.time())


@api.get("/groups")
async def groups(*, request: Request, facts: ReadableFlow, search: Search = "", offset: Offset = 0, limit: Limit = 50) -> dict[str, Any]:
    snapshot = await _read(request, facts, ReadName.GROUPS)
    return await run_in_threadpool(lambda: documents.groups(snapshot, time.time(), search=search, offset=offset, limit=limit))


@api.get("/group")
async def group(request: Request, facts: ReadableFlow, group: GroupName) -> dict[str, Any]:
    return documents.group(await _read(request, facts, ReadName.GROUP, group), time.time(), facts, group)


@api.get("/drift")
async def drift(request: Request, facts: ReadableFlow) -> dict[str, Any]:
    return documents.drift(await _read(request, facts, ReadName.DRIFT), time.time())


@api.get("/verify")
async def verify(request: Request, facts: ReadableFlow) -> dict[str, Any]:
    return documents.verify(await _read(request, facts, ReadName.RUNS), time.time())


@api.get("/config")
async def config(request: Request, facts: ReadableFlow) -> dict[str, Any]:
    """The flow's properties, and where each comes from. No secret is among them."""
    found = await run_in_threadpool(lambda: request.app.state.flows.in_force(facts.flow))
    return documents.config(facts, found, time.time())


@api.get("/recovery")
async def recovery(user: User, facts: ReadableFlow) -> dict[str, Any]:
    """The DAGs of failover, failback and cut-over that Airflow has and the user may see, and their last runs."""

    def answer() -> dict[str, Any]:
        known = ferry_dags()
        dags = {kind: f"{facts.dag_id}.{kind}" for kind in COMMANDS}
        runs = {
            dag: dag_runs(dag, NEWEST_RUNS) if may_read_runs(user, dag) else ()
            for dag in dags.values()
            if dag in known and may_read(user, dag)
        }
        return documents.recovery(facts, dags, runs, {dag for dag in runs if may_trigger(user, dag)}, time.time())

    return await run_in_threadpool(answer)


@files.get("/")
async def index(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}/static/index.html")


@files.get("/static/{path:path}")
async def static(request: Request, path: str) -> Response:
    """The page's files. They hold no secret, but they need a login like every route."""
    answer = await _static.get_response(path, request.scope)
    # The browser asks each time, and gets 304 for an unchanged file. Otherwise it would use old files after an upgrade.
    answer.headers["Cache-Control"] = "private, no-cache"
    return answer


@files.get("/docs/{path:path}")
async def documentation(request: Request, path: str) -> Response:
    """The pages of the documentation, which logs and the page name, and their pictures. Without a name: where it starts."""
    path = path or "index.md"
    if not path.endswith(".md"):
        return await _docs.get_response(path, request.scope)
    place, _ = await run_in_threadpool(_docs.lookup_path, path)
    if not place:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"there is no page {path}")
    return HTMLResponse(page_as_html(await run_in_threadpool(Path(place).read_text, "utf-8")))


_static = StaticFiles(directory=STATIC, check_dir=False)
_docs = StaticFiles(directory=DOCS, check_dir=False)


def _look(request: Request, facts: PageFlow, name: ReadName, argument: str = "", *, again: bool = False) -> Outcome:
    service: PageService = request.app.state.service
    return service.look(facts.flow, name, argument, again=again)


def _ask(request: Request, facts: PageFlow, name: ReadName, argument: str = "") -> Outcome:
    """The data that is known, and the read under way. If the browser accepts no cached data, it begins a new read."""
    return _look(request, facts, name, argument, again=_wants_news(request))


def _wants_news(request: Request) -> bool:
    return request.headers.get("Cache-Control") == "no-cache"


async def _read(request: Request, facts: PageFlow, name: ReadName, argument: str = "") -> Snapshot[Any]:
    """The data that is known. If there is none, if it is old, or if the browser accepts no cached data, waits for the read."""
    outcome = _ask(request, facts, name, argument)
    if _is_news(outcome) and not _wants_news(request):
        return outcome[0]
    await _reads(request, [outcome], FIRST_WAIT_SECONDS if outcome[0].read_at is None else MAP_WAIT_SECONDS)
    return _look(request, facts, name, argument)[0]


async def _reads(request: Request, outcomes: Iterable[Outcome], seconds: float) -> None:
    """Wait for the reads of data that is missing or old; for every read if the browser accepts no cached data."""
    news = _wants_news(request)
    waiting = [asyncio.wrap_future(outcome[1]) for outcome in outcomes if outcome[1] is not None and (news or not _is_news(outcome))]
    if waiting:
        await asyncio.wait([asyncio.shield(future) for future in waiting], timeout=seconds)


def _is_news(outcome: Outcome) -> bool:
    snapshot, age = outcome[0], outcome[0].age(time.time())
    return snapshot.problem is not None or (age is not None and age < OLD_SECONDS)


def _view(request: Request, user: BaseUser, facts: PageFlow, runs_of_airflow: int) -> FlowView:
    """What is known of a flow now. Asks the metadata database."""
    seen, _ = _look(request, facts, ReadName.OVERVIEW)
    found, _ = _look(request, facts, ReadName.RUNS)
    of_airflow = dag_runs(facts.dag_id, runs_of_airflow) if may_read_runs(user, facts.dag_id) else ()
    return FlowView(facts, seen, found, of_airflow, rights(user, facts.dag_id, facts.verify_dag_id), is_paused(facts.dag_id))
