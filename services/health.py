"""Whether each thing that the service uses answers, and how the job queue stands."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from services.errors import AnamnesisError
from services.jobs.queue import JobQueue
from services.platform import metrics, redis
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.bootstrap import Services

State = Literal["ok", "degraded", "down"]
DependencyState = Literal["ok", "degraded", "down", "not_asked"]
"""`not_asked`: a model or an embedded Milvus that was not needed since the start: nothing is known of it."""

_PATIENCE_S = 3.0
_PATIENCE_OF_A_SCRAPE_S = 1.0
_WORKER_IS_SILENT_S = 30.0


@dataclass(frozen=True)
class Dependency:
    """How one dependency is: `down` only for the one that nothing works without."""

    name: str
    state: DependencyState
    """`not_asked`: a model that has had no request since the start."""
    latency_ms: float | None
    detail: str


async def check_dependencies(services: "Services") -> list[Dependency]:
    """Ask every dependency, all at once; models are not asked: their state is that of their last requests."""
    settings = services.settings
    *stores, worker = await asyncio.gather(
        _ask("postgres", services.database.ping(), _where(settings.database_url), needed=True),
        _ask_milvus(services),
        _ask("redis", redis.ping(services.redis), _where(settings.redis_url, embedded="in-process"), needed=False),
        _worker(settings, services.jobs),
    )
    return [*stores, worker, _model(services), _embeddings(services), *_tool_servers(services)]


def _model(services: "Services") -> Dependency:
    models = services.models
    name = services.settings.llm_model or "built-in offline model (quotes only); set ANAMNESIS_LLM_MODEL"
    if failing := models.failing:
        away = f"{name}; did not answer when it was asked last: {', '.join(failing)}"
        return Dependency("llm", "degraded", None, away)
    if models.leads_back:
        back = f"{name}; its address leads back to an Anamnesis service, and is not asked"
        return Dependency("llm", "degraded", None, back)
    is_known = models.offline or models.has_answered(models.default_model)
    return Dependency("llm", "ok" if is_known else "not_asked", None, name)


def _embeddings(services: "Services") -> Dependency:
    embedder = services.embedder
    if embedder.failing:
        return Dependency("embeddings", "degraded", None, embedder.model)
    if (reason := embedder.by_words_alone) is not None:
        return Dependency("embeddings", "degraded", None, f"recall goes by words alone: {reason}")
    is_known = embedder.answered or services.settings.embedding_model is None
    return Dependency("embeddings", "ok" if is_known else "not_asked", None, embedder.model)


def _tool_servers(services: "Services") -> list[Dependency]:
    return [
        Dependency(f"tools: {each.name}", "degraded" if each.reason else "ok", None, each.reason or "offered")
        for each in services.mcp_servers.servers
    ]


def overall(dependencies: list[Dependency]) -> State:
    """The worst state among them."""
    states = {dependency.state for dependency in dependencies}
    return "down" if "down" in states else "degraded" if "degraded" in states else "ok"


async def measure_jobs(jobs: JobQueue) -> None:
    """Set the gauges of the job queue; they are NaN while the database does not answer."""
    gauges = (metrics.JOBS_WAITING, metrics.JOBS_RUNNING, metrics.JOBS_FAILED, metrics.JOBS_OLDEST_SECONDS)
    values: tuple[float, ...] = (math.nan,) * len(gauges)
    with contextlib.suppress(AnamnesisError, TimeoutError):
        async with asyncio.timeout(_PATIENCE_OF_A_SCRAPE_S):
            state = await jobs.records.state()
        values = (state.waiting, state.running, state.failed, state.oldest_s or 0.0)
    for gauge, value in zip(gauges, values, strict=True):
        gauge.set(value)


async def _worker(settings: Settings, jobs: JobQueue) -> Dependency:
    where = jobs.worker_state
    try:
        async with asyncio.timeout(_PATIENCE_S):
            state = await jobs.records.state()
    except (AnamnesisError, TimeoutError):
        return Dependency("worker", "degraded", None, f"{where}: the queue cannot be read")
    if where != "external":
        return Dependency("worker", "ok" if where == "running" else "degraded", None, f"{where}: {state}")
    silent = state.heartbeat_s is None or state.heartbeat_s > _WORKER_IS_SILENT_S
    if silent and settings.worker == "inline":  # asked by a command: the service brings its own
        return Dependency("worker", "ok", None, f"starts with the service: {state}")
    if silent:
        return Dependency("worker", "degraded", None, f"none runs: {state}")
    return Dependency("worker", "ok", None, f"runs in another process: {state}")


def _where(url: object, *, embedded: str = "embedded") -> str:
    return "server" if url else embedded


async def _ask_milvus(services: "Services") -> Dependency:
    standby = services.milvus.standby
    if standby is not None and not standby.is_running:
        return Dependency("milvus", "not_asked", None, "embedded; is started when it is needed")
    where = _where(services.settings.milvus_uri)
    if (progress := services.index_rebuild.progress) is not None:
        where += f"; its indexes are being rebuilt: {progress.done} of {progress.total} done"
    elif services.index_rebuild.is_due:
        where += "; its indexes are of another model or version, and will be rebuilt"
    return await _ask("milvus", services.milvus.ping(), where, needed=False)


async def _ask(name: str, ping: Awaitable[float], where: str, *, needed: bool) -> Dependency:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return Dependency(name, "ok", round(await ping, 2), where)
    except (AnamnesisError, TimeoutError) as error:
        reason = error.message if isinstance(error, AnamnesisError) else "does not answer in time"
        return Dependency(name, "down" if needed else "degraded", None, f"{where}: {reason}")
