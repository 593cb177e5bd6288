"""Whether each dependency of the service answers, and the state of the job queue."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from services.backlog import backup_age_s
from services.errors import AnamnesisError
from services.jobs.records import QueueState
from services.platform import metrics, redis

if TYPE_CHECKING:
    from services.bootstrap import Services

State = Literal["ok", "degraded", "down"]
DependencyState = Literal["ok", "degraded", "down", "not_asked"]
"""State of a dependency; `not_asked`: a model or an embedded Milvus that was not needed since the start."""

_PATIENCE_S = 1.2
_WORKER_IS_SILENT_S = 30.0
_MODEL_FAILS = 0.1
"""Minimum share of the last minute's turns that a model fails for it to count as degraded."""
_TOOLS = "tools: "

_ADVICE = {
    "postgres": "Start it or free its disk; see ANAMNESIS_DATABASE_URL, or postgres.log in the data folder.",
    "milvus": "Turns answer without it; start it and see ANAMNESIS_MILVUS_URI, or milvus.log in the data folder.",
    "redis": "Turns answer without it; see ANAMNESIS_REDIS_URL, and let it write: as a master, with free memory.",
    "worker": "Start one: anamnesis worker, or ANAMNESIS_WORKER=inline.",
    "llm": "Ask it: anamnesis doctor --ask",
    "embeddings": "The built-in encoder: install anamnesis-agent again. Another one: anamnesis doctor --ask",
    "tools": "Turns go without its tools; start that server, or see its entry in ANAMNESIS_MCP_SERVERS.",
}


@dataclass(frozen=True)
class Dependency:
    """State of one dependency; only PostgreSQL, without which nothing works, can be `down`."""

    name: str
    state: DependencyState
    """`not_asked` = a model that has had no request since the start."""
    latency_ms: float | None
    detail: str
    advice: str = ""
    """Advice in one sentence; empty while it is well."""


async def check_dependencies(services: "Services") -> list[Dependency]:
    """Ask every dependency, all at once and for 1.2 seconds at most; one that hangs is not asked again
    meanwhile. Models are not asked: their state comes from the last minute's turns."""
    settings = services.settings
    cache = _where(settings.redis_url, embedded="in-process")
    *stores, worker = await asyncio.gather(
        _ask(services, "postgres", services.database.ping, _where(settings.database_url), needed=True),
        _ask_milvus(services),
        _ask(services, "redis", lambda: redis.probe(services.redis), cache, needed=False),
        _worker(services),
    )
    found = [*stores, worker, _model(services), _embeddings(services), *_tool_servers(services)]
    return [replace(each, advice=_advice(each)) for each in found]


def for_strangers(dependencies: list[Dependency]) -> list[Dependency]:
    """Return what callers may know whose key cannot be checked: which dependencies are well, without details."""
    return [replace(each, detail="") for each in dependencies if not each.name.startswith(_TOOLS)]


def _advice(found: Dependency) -> str:
    if found.state == "ok" or (found.state, found.name) == ("not_asked", "milvus"):
        return ""
    return _ADVICE["tools" if found.name.startswith(_TOOLS) else found.name]


def _model(services: "Services") -> Dependency:
    models = services.models
    name = services.settings.llm_model or "built-in offline model (quotes only); set ANAMNESIS_LLM_MODEL"
    if failing := models.failing:
        away = f"{name}; did not answer when it was asked last: {', '.join(failing)}"
        return Dependency("llm", "degraded", None, away)
    if models.leads_back:
        back = f"{name}; its address leads back to an Anamnesis service, and is not asked"
        return Dependency("llm", "degraded", None, back)
    failed, ended = services.recent_turns.failed_by_model()
    if failed > ended * _MODEL_FAILS:
        return Dependency("llm", "degraded", None, f"{name}; failed {failed} of {ended} turns of the last minute")
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
        Dependency(f"{_TOOLS}{each.name}", "degraded" if each.reason else "ok", None, each.reason or "offered")
        for each in services.mcp_servers.servers
    ]


def overall(dependencies: list[Dependency]) -> State:
    """Return the worst state among them."""
    states = {dependency.state for dependency in dependencies}
    return "down" if "down" in states else "degraded" if "degraded" in states else "ok"


async def measure(services: "Services") -> None:
    """Set the gauges of dependencies, the job queue and the backlog; NaN = the database is away."""
    dependencies, *_ = await asyncio.gather(
        check_dependencies(services), _measure_jobs(services), _measure_backlog(services)
    )
    for each in dependencies:
        if not each.name.startswith(_TOOLS):
            metrics.DEPENDENCY_UP.labels(each.name).set(each.state in {"ok", "not_asked"})


async def _measure_backlog(services: "Services") -> None:
    backlog = services.backlog
    with contextlib.suppress(AnamnesisError, TimeoutError):
        await services.probes.ask("backlog", backlog.measure, within_s=_PATIENCE_S)
    metrics.INDEX_WAITS_SECONDS.set(backlog.index_waits_s)
    metrics.UPKEEP_OVERDUE_USERS.set(backlog.users_overdue)
    metrics.BACKUP_AGE_SECONDS.set(backup_age_s(services.settings.data_dir))


async def _measure_jobs(services: "Services") -> None:
    gauges = (metrics.JOBS_WAITING, metrics.JOBS_RUNNING, metrics.JOBS_FAILED, metrics.JOBS_OLDEST_SECONDS)
    values: tuple[float, ...] = (math.nan,) * len(gauges)
    with contextlib.suppress(AnamnesisError, TimeoutError):
        state = await _queue(services)
        values = (state.waiting, state.running, state.failed, state.oldest_s or 0.0)
    for gauge, value in zip(gauges, values, strict=True):
        gauge.set(value)


async def _queue(services: "Services") -> QueueState:
    return await services.probes.ask("queue", services.jobs.records.state, within_s=_PATIENCE_S)


async def _worker(services: "Services") -> Dependency:
    where = services.jobs.worker_state
    try:
        state = await _queue(services)
    except (AnamnesisError, TimeoutError):
        return Dependency("worker", "degraded", None, f"{where}: the queue cannot be read")
    if where != "external":
        return Dependency("worker", "ok" if where == "running" else "degraded", None, f"{where}: {state}")
    silent = state.heartbeat_s is None or state.heartbeat_s > _WORKER_IS_SILENT_S
    if silent and services.settings.worker == "inline":  # asked by a command, while the service has its own worker
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
    return await _ask(services, "milvus", services.milvus.ping, where, needed=False)


async def _ask(
    services: "Services", name: str, ping: Callable[[], Coroutine[Any, Any, float]], where: str, *, needed: bool
) -> Dependency:
    try:
        taken_ms = await services.probes.ask(name, ping, within_s=_PATIENCE_S)
        return Dependency(name, "ok", round(taken_ms, 2), where)
    except (AnamnesisError, TimeoutError) as error:
        reason = error.message if isinstance(error, AnamnesisError) else "does not answer in time"
        return Dependency(name, "down" if needed else "degraded", None, f"{where}: {reason}")
