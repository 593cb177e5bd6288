"""An MCP server on stdio that forwards every request to a service's `/mcp`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

_MCP_PATH = "/mcp"
_TIMEOUT_S = 60.0
_Context = ServerRequestContext[Any]
_Page = types.PaginatedRequestParams | None


class Unreachable(Exception):
    """The service does not answer, or refuses."""


async def forward(url: str, user: str | None, key: str | None) -> None:
    """Serve standard input and output until the input ends.

    Args:
        url: Address of the service.
        user: User sent in a header; None = the user of the key.
        key: An API key or a token.

    Raises:
        Unreachable: The service does not answer as an MCP server.
    """
    address = url.rstrip("/").removesuffix(_MCP_PATH) + _MCP_PATH
    headers = {b"X-User-Id": user.encode()} if user else {}
    if key:
        headers[b"Authorization"] = f"Bearer {key}".encode()
    try:
        async with httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_S) as http:
            server = await _Forwarding(address, http).server()
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
    except MCPError as error:
        raise Unreachable(f"{url} refuses: {error}") from error


class _Forwarding:
    """Sends each request separately, so that a restart of the service costs only the requests of that moment."""

    def __init__(self, address: str, http: httpx2.AsyncClient) -> None:
        self._address = address
        self._http = http

    async def server(self) -> Server[Any]:
        """Make the server on this side, which describes itself as the service does. Raises `Unreachable` if the
        service does not answer as an MCP server."""
        async with self._client("auto") as client:
            about, instructions = client.server_info, client.instructions
        return Server(
            about.name if about else "anamnesis",
            version=about.version if about else "",
            instructions=instructions,
            on_list_tools=self._page_of("list_tools"),
            on_call_tool=self._call_tool,
            on_list_resources=self._page_of("list_resources"),
            on_list_resource_templates=self._page_of("list_resource_templates"),
            on_read_resource=self._read_resource,
            on_list_prompts=self._page_of("list_prompts"),
            on_get_prompt=self._get_prompt,
        )

    @asynccontextmanager
    async def _client(self, mode: str = LATEST_MODERN_VERSION) -> AsyncIterator[Client]:
        try:
            async with Client(streamable_http_client(self._address, http_client=self._http), mode=mode) as client:
                yield client
        except MCPError:
            raise
        except Exception as error:
            raise Unreachable(f"{self._address} does not answer as an MCP server: {_reason(error)}") from error

    def _page_of(self, method: str) -> Callable[[_Context, _Page], Awaitable[Any]]:
        """Make a handler that forwards a request for a page of a list."""

        async def page(_: _Context, params: _Page) -> Any:
            async with self._client() as client:
                return await getattr(client.session, method)(params=params)

        return page

    async def _call_tool(self, _: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            async with self._client() as client:
                return await client.session.call_tool(params.name, params.arguments)
        except Unreachable as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)

    async def _read_resource(
        self, _: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with self._client() as client:
            return await client.session.read_resource(params.uri)

    async def _get_prompt(self, _: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        async with self._client() as client:
            return await client.session.get_prompt(params.name, params.arguments)


def _reason(error: BaseException) -> str:
    """Return the first cause in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
