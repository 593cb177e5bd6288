"""The server behind `/mcp` when it does not start."""

import asyncio

import httpx
import pytest
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from api.mcp.http import McpOverHttp, routes
from services.bootstrap import Services

pytestmark = pytest.mark.anyio

ASKS_FOR_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def test_a_server_that_does_not_start_fails_each_request_and_keeps_none_waiting(services: Services) -> None:
    spent = StreamableHTTPSessionManager(Server("memory"))
    async with spent.run():
        """It runs once."""
    serving = McpOverHttp(services, make=lambda _: spent)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Starlette(routes=list(routes))(
            {**scope, "state": {"services": services, "mcp": serving}}, receive, send
        )

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for _ in range(2):
            async with asyncio.timeout(60):
                with pytest.raises(RuntimeError, match="run"):
                    await client.post("/mcp", headers={"X-User-Id": "u-1"}, json=ASKS_FOR_TOOLS)
    await serving.close()
