"""Whether each thing that the service uses answers."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal

from redis.asyncio import Redis

from services.errors import AnamnesisError
from services.jobs.queue import JobQueue
from services.platform import redis
from services.platform.milvus import Milvus
from services.platform.postgres import Database
from services.platform.settings import Settings

State = Literal["ok", "degraded", "down"]

_PATIENCE_S = 3.0


@dataclass(frozen=True)
class Dependency:
    """How one dependency is: `down` only for the one that nothing works without."""

    name: str
    state: State
    latency_ms: float | None
    detail: str


async def check_dependencies(
    settings: Settings, database: Database, cache: Redis, milvus: Milvus, jobs: JobQueue
) -> list[Dependency]:
    """Ask every dependency, all at once."""
    stores = await asyncio.gather(
        _ask("postgres", database.ping(), _where(settings.database_url), needed=True),
        _ask("milvus", milvus.ping(), _where(settings.milvus_uri), needed=False),
        _ask("redis", redis.ping(cache), _where(settings.redis_url, embedded="in-process"), needed=False),
    )
    worker = jobs.worker_state
    model = settings.llm_model or "built-in offline model (quotes only); set ANAMNESIS_LLM_MODEL"
    return [
        *stores,
        Dependency("worker", "degraded" if worker == "stopped" else "ok", None, worker),
        Dependency("llm", "ok", None, model),
        Dependency("embeddings", "ok", None, settings.embedding_model or "built-in lexical embedder"),
    ]


def overall(dependencies: list[Dependency]) -> State:
    """The worst state among them."""
    states = {dependency.state for dependency in dependencies}
    return "down" if "down" in states else "degraded" if "degraded" in states else "ok"


def _where(url: object, *, embedded: str = "embedded") -> str:
    return "server" if url else embedded


async def _ask(name: str, ping: Awaitable[float], where: str, *, needed: bool) -> Dependency:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return Dependency(name, "ok", round(await ping, 2), where)
    except (AnamnesisError, TimeoutError) as error:
        reason = error.message if isinstance(error, AnamnesisError) else "does not answer in time"
        return Dependency(name, "down" if needed else "degraded", None, f"{where}: {reason}")
