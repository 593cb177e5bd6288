"""A connection to a server of the Model Context Protocol, and its tools as they are offered to the model.

A task connects, lists the tools, checks now and then that the server still answers, and tries again after a
failure. A server that is down costs only its own tools.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import structlog
from langchain_core.tools import StructuredTool, ToolException
from mcp import types
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from services.conversations.values import images_of_result
from services.tools.mcp_accounts import Storage
from services.tools.mcp_addresses import client_for
from services.tools.mcp_config import McpServerConfig
from services.tools.tool import RegisteredTool, WithImages

CONNECT_S = 30.0
LOOK_EVERY_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_GRACE_S = 2.0
LONGEST_RESULT = 20_000
"""Characters of a result that the model reads."""
_LONGEST_DESCRIPTION, _MOST_TOOLS, _LONGEST_NAME = 2_000, 64, 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
PRIORITY = 200

OnTools = Callable[[str, Sequence[RegisteredTool]], None]
"""Called with a server's name and the tools that it has now."""

log = structlog.get_logger(__name__)


class McpServer:
    def __init__(self, name: str, config: McpServerConfig, on_tools: OnTools) -> None:
        self.name = name
        self._config = config
        self._on_tools = on_tools
        self._client: Client | None = None
        self._lost = asyncio.Event()
        self.reason: str | None = "is not connected yet"
        """Reason why its tools are not offered; None if they are."""
        self.listed = asyncio.Event()
        """Set when the first attempt has ended, well or not."""

    async def run(self) -> None:
        """Stay connected, until it is cancelled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with self._connected() as client:
                    pause_s = _FIRST_PAUSE_S
                    await self._watch(client)
            except Exception as error:  # whatever a server does, the service goes on without it
                self.reason = reason_of(error)
                log.warning("a tool server is away", server=self.name, reason=self.reason)
            finally:
                self._client = None
                self._on_tools(self.name, [])
                self.listed.set()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool and return what it says. Raises `ToolException` if it failed, or the server does not
        answer; says why."""
        client = self._client
        if client is None:
            raise ToolException(f"The server {self.name} does not answer at present.")
        try:
            result = await client.call_tool(tool, dict(arguments), read_timeout_seconds=self._config.timeout_s)
        except Exception as error:
            self._lost.set()  # the connection may have ended
            raise failed_call(self.name, error) from error
        return said(result)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        async with AsyncExitStack() as stack:
            # The limit must not cover the whole block, or a cancellation of the block would look like a time-out.
            async with asyncio.timeout(CONNECT_S):
                client = await stack.enter_async_context(Client(await self._transport(stack)))
            yield client

    async def _transport(self, stack: AsyncExitStack) -> Any:
        config = self._config
        if config.command is not None:
            env = {name: value.get_secret_value() for name, value in config.env.items()}
            return StdioServerParameters(command=config.command, args=config.args, env=env, cwd=config.cwd)
        assert config.url is not None  # noqa: S101 — one of both is there
        if config.oauth is not None:
            http = await stack.enter_async_context(client_for(config, _signing_in(config)))
            return streamable_http_client(config.url, http_client=http)
        headers = {name: value.get_secret_value() for name, value in config.headers.items()}
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=config.timeout_s))
        return streamable_http_client(config.url, http_client=http)

    async def _watch(self, client: Client) -> None:
        """Keep the list of tools, until the server no longer answers."""
        known: list[str] = []
        while True:
            self._lost.clear()
            async with asyncio.timeout(CONNECT_S):
                listed = await client.session.list_tools()
                tools = offered(self._config, listed.tools)
            names = [each.name for each in tools]
            if self._client is None or names != known:
                self._client, self.reason, known = client, None, names
                self._on_tools(self.name, [self._registered(each) for each in tools])
                log.info("a tool server is there", server=self.name, tools=len(tools))
                self.listed.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._lost.wait()

    def _registered(self, tool: types.Tool) -> RegisteredTool:
        async def call(**arguments: Any) -> str:
            return await self.call(tool.name, arguments)

        return registered(self.name, self._config, tool, call)


def offered(config: McpServerConfig, tools: Sequence[types.Tool]) -> list[types.Tool]:
    """Return those of a server's tools that models may call."""
    return [each for each in tools if config.tools is None or each.name in config.tools][:_MOST_TOOLS]


def registered(
    server: str, config: McpServerConfig, tool: types.Tool, call: Callable[..., Awaitable[str]]
) -> RegisteredTool:
    """Return a tool of a server as the model is offered it."""
    reads = tool.annotations is not None and tool.annotations.read_only_hint is True
    return RegisteredTool(
        StructuredTool(
            name=tool_name(server, tool.name),
            description=(tool.description or tool.name)[:_LONGEST_DESCRIPTION],
            args_schema=dict(tool.input_schema),
            coroutine=call,
        ),
        timeout_s=config.timeout_s + _GRACE_S,
        priority=PRIORITY,
        experts=config.experts,
        asks=config.approve == "always" or (config.approve == "changes" and not reads),
    )


def said(result: types.CallToolResult) -> str:
    """Return the content of a tool's result. Raises `ToolException` if the result says that the tool failed."""
    text = _text(result.content)
    if result.is_error:
        raise ToolException(text)
    return text


def tool_name(server: str, tool: str) -> str:
    """Return the name by which models call a tool of a server."""
    name = _UNFIT.sub("_", f"{server}_{tool}")
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9]}_{digest}"


def _signing_in(config: McpServerConfig) -> Any:
    oauth = config.oauth
    if oauth is None or config.url is None:
        return None
    assert oauth.client_id and oauth.client_secret and oauth.issuer  # noqa: S101, PT018 — checked when it was read
    return ClientCredentialsOAuthProvider(
        server_url=config.url,
        storage=Storage(),
        client_id=oauth.client_id,
        client_secret=oauth.client_secret.get_secret_value(),
        scope=oauth.scope,
        issuer=oauth.issuer,
    )


def _text(content: Sequence[Any]) -> str:
    """Return what a result says, with the images that a model can be shown."""
    parts: list[str] = []
    images: list[str] = []
    for each in content:
        if isinstance(each, types.TextContent):
            parts.append(each.text)
        elif isinstance(each, types.EmbeddedResource) and isinstance(each.resource, types.TextResourceContents):
            parts.append(each.resource.text)
        elif isinstance(each, types.ResourceLink):
            about = f": {each.description}" if each.description else ""
            parts.append(f"[link {each.title or each.name} <{each.uri}>{about}]")
        elif isinstance(each, types.ImageContent):
            images.append(f"data:{each.mime_type};base64,{each.data}")
        elif (
            isinstance(each, types.EmbeddedResource)
            and isinstance(each.resource, types.BlobResourceContents)
            and str(each.resource.mime_type).startswith("image/")
        ):
            images.append(f"data:{each.resource.mime_type};base64,{each.resource.blob}")
            parts.append(f"[file <{each.resource.uri}>]")
        elif isinstance(each, types.EmbeddedResource):
            parts.append(f"[file <{each.resource.uri}>, {each.resource.mime_type or 'of no kind'}, not shown]")
        else:
            parts.append(f"[{each.type}, {each.mime_type}, that is not shown]")
    shown, words = images_of_result(images)
    text = "\n".join([*parts, words] if words else parts)
    if len(text) > LONGEST_RESULT:
        text = f"{text[:LONGEST_RESULT]}\n[… cut; it has {len(text)} characters]"
    said = WithImages(text)
    said.images = shown
    return said


def failed_call(server: str, error: Exception) -> ToolException:
    """Return the text that tells the model why a call failed."""
    if isinstance(error, MCPError) and error.code == types.REQUEST_TIMEOUT:
        return ToolException(f"{server} did not answer in time; whether anything was done there is not known.")
    if isinstance(error, MCPError):
        return ToolException(f"{server} refused: {error}"[:LONGEST_RESULT])
    return ToolException(f"The server {server} broke off: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """Return why a connection failed; task groups wrap what matters."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:300] if str(error) else type(error).__name__
