"""`/healthz`, `/readyz`, `/metrics`."""

from dataclasses import asdict
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from api.access import FOR_OPERATORS, RunnerOf, ServicesOf, is_operator
from api.request_bodies import JsonRoute
from api.schemas import ReadinessView
from services.health import check_dependencies, measure_jobs, overall
from services.platform.metrics import exposition

router = APIRouter(route_class=JsonRoute, tags=["health"])


@router.get("/api/v1/health", response_class=PlainTextResponse, include_in_schema=False)
@router.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """Whether the process is alive."""
    return "ok"


@router.get("/readyz", response_model=ReadinessView, responses={503: {"model": ReadinessView}})
async def readyz(connection: Request, services: ServicesOf, runner: RunnerOf) -> JSONResponse:
    """Whether the service can answer and, for operators, the state of each dependency; 503 if busy or down."""
    dependencies = await check_dependencies(services)
    state: str = overall(dependencies)
    if state != "down" and runner.busy:
        state = "busy"
    status = HTTPStatus.SERVICE_UNAVAILABLE if state in {"busy", "down"} else HTTPStatus.OK
    shown = dependencies if await is_operator(connection) else []
    return JSONResponse({"state": state, "dependencies": [asdict(each) for each in shown]}, status)


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[FOR_OPERATORS])
async def metrics(connection: Request, services: ServicesOf) -> Response:
    """Metrics in Prometheus' text format; in OpenMetrics, with exemplars, for those who accept it."""
    await measure_jobs(services.jobs)
    content, media_type = exposition(connection.headers.get("accept", ""))
    return Response(content, media_type=media_type)
