"""Leads each request to the shard of its caller's tenant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.access import caller_of
from api.mcp.http import McpOverHttp
from api.problems import response_of
from api.request_bodies import answer_early
from graph.builder import build_graph
from graph.turns.runner import TurnRunner
from services.bootstrap import Services
from services.errors import AnamnesisError, CallerError
from services.shards.opened import OpenShards

_ROUTED = ("/api/", "/v1/", "/mcp")
"""Beginnings of the paths that concern a tenant; the others are about the service."""
_TRY_AGAIN_LATER = 1013


@dataclass(frozen=True)
class ServedShard:
    """What answers requests over one shard."""

    runner: TurnRunner
    mcp: McpOverHttp | None
    """None for the first database, whose server belongs to the application."""


ServedShards = OpenShards[ServedShard]


@asynccontextmanager
async def serve_shards(home: Services, runner: TurnRunner) -> AsyncIterator[ServedShards]:
    """Open the shards and run the turns of each, beside those of the first database.

    Args:
        home: the services over the first database.
        runner: of its turns.
    """

    @asynccontextmanager
    async def serve_shard(services: Services) -> AsyncIterator[ServedShard]:
        of_shard, mcp = TurnRunner(build_graph(services).compile(), services), McpOverHttp(services)
        of_shard.share_limit(runner)
        of_shard.open()
        if services.settings.worker == "inline":
            services.jobs.start_worker()
        yield ServedShard(of_shard, mcp)
        await mcp.close()
        await of_shard.close()

    async with OpenShards(home, ServedShard(runner, None), serve_shard).open() as shards:
        yield shards


class TenantRouting:
    """ASGI middleware: gives a request the services, the runner and the MCP server of its tenant's shard.

    Requests of unknown callers go on unchanged, and are refused by their routes.
    """

    def __init__(self, app: ASGIApp, *, shards: ServedShards) -> None:
        """Take the shards."""
        self._app = app
        self._shards = shards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the caller, and the shard of the caller's tenant."""
        if scope["type"] in {"http", "websocket"} and scope["path"].startswith(_ROUTED):
            try:
                await self._route(scope)
            except CallerError:
                pass
            except AnamnesisError as error:
                if scope["type"] == "websocket":
                    await WebSocketClose(_TRY_AGAIN_LATER, error.message)(scope, receive, send)
                else:
                    await answer_early(response_of(error, path=scope["path"]), scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _route(self, scope: Scope) -> None:
        caller = await caller_of(HTTPConnection(scope))
        shard = await self._shards.of(caller.tenant_id)
        state = scope["state"]
        if scope["type"] == "websocket":

            async def check_place() -> None:
                await self._shards.require(caller.tenant_id, shard)

            state["check_place"] = check_place
        else:
            state["caller"] = caller
        state["services"], state["runner"] = shard.services, shard.used.runner
        if shard.used.mcp is not None:
            state["mcp"] = shard.used.mcp
