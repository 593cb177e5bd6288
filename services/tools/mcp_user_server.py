"""A server of tools at which each user has an account of their own, connected in their browser.

Its tools are known once anybody has connected an account; a call connects with the account of the turn's user.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID
from weakref import WeakValueDictionary

import httpx2
import structlog
from langchain_core.tools import StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from mcp import types
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from services.errors import NotFound, Unavailable
from services.tools.mcp_accounts import Accounts, SignedIn, Storage
from services.tools.mcp_config import McpServerConfig
from services.tools.mcp_connection import (
    CONNECT_S,
    LOOK_EVERY_S,
    PRIORITY,
    OnTools,
    failed_call,
    offered,
    reason_of,
    registered,
    said,
    tool_name,
)
from services.tools.tool import NotConnected, RegisteredTool
from state.turn import OpenTurn

_PATIENCE_S = 600.0
"""Seconds for the user to agree in the browser."""

log = structlog.get_logger(__name__)


class _MustAsk(Exception):
    """The authorization server wants the user."""


@dataclass(frozen=True)
class _Attempt:
    """A user who was sent to the authorization server."""

    address: asyncio.Future[str]
    answer: asyncio.Future[AuthorizationCodeResult]
    done: asyncio.Future[None]
    state: list[str] = field(default_factory=list)


class UserMcpServer:
    """One server."""

    def __init__(
        self, name: str, config: McpServerConfig, on_tools: OnTools, accounts: Accounts, *, callback_url: str
    ) -> None:
        """Take where the browser comes back to, unless the configuration says it."""
        assert config.url is not None and config.oauth is not None  # noqa: S101, PT018 — checked when it was read
        self.name = name
        self.reason: str | None = None
        self.listed = asyncio.Event()
        self._config, self._url, self._oauth = config, config.url, config.oauth
        self._on_tools = on_tools
        self._accounts = accounts
        self._callback = config.oauth.callback_url or callback_url
        self._look = asyncio.Event()
        self._attempts: dict[tuple[UUID, UUID], _Attempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Calls of one user follow one another: of two that renew a token at once, one would lose it.
        self._locks: WeakValueDictionary[tuple[UUID, UUID], asyncio.Lock] = WeakValueDictionary()

    async def run(self) -> None:
        """Offer what accounts have listed, until it is cancelled."""
        try:
            while True:
                self._look.clear()
                try:
                    tools = offered(self._config, await self._accounts.tools(self.name))
                    self._on_tools(self.name, [self._connecting(), *map(self._registered, tools)])
                    self.reason = None
                except Unavailable as error:
                    self.reason = reason_of(error)
                self.listed.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._look.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def address(self, tenant_id: UUID, user_id: UUID) -> str:
        """Return where the user agrees; the answer comes to `finish`.

        Raises:
            Unavailable: the server or its authorization server does not answer as it should.
        """
        whose = (tenant_id, user_id)
        if (attempt := self._attempts.get(whose)) is None:
            loop = asyncio.get_running_loop()
            attempt = self._attempts[whose] = _Attempt(
                loop.create_future(), loop.create_future(), loop.create_future()
            )
            task = loop.create_task(self._connect(whose, attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        either: list[asyncio.Future[Any]] = [attempt.address, attempt.done]
        done, _ = await asyncio.wait(either, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        if attempt.address in done:
            return attempt.address.result()
        reason = attempt.done.exception() if attempt.done in done else None
        raise Unavailable(f"{self.name} cannot be connected: {reason_of(reason) if reason else 'no answer'}")

    def take(self, parameters: str) -> "_Attempt | None":
        """Take what the browser brought back, if its user was sent from here; connect in the background."""
        given = _values(parameters)
        attempt = next((each for each in self._attempts.values() if given.get("state") in each.state), None)
        if attempt is not None and not attempt.answer.done():
            if given.get("code"):
                attempt.answer.set_result(AuthorizationCodeResult.model_validate(given))
            else:
                why = f"it was refused: {given.get('error_description') or given.get('error', 'no reason')}"[:300]
                attempt.answer.set_exception(Unavailable(why))
        return attempt

    async def finish(self, parameters: str) -> bool:
        """Do the same, and wait until the account is there; return whether the user was sent from here.

        Raises:
            Unavailable: it could not be connected; says why.
        """
        if (attempt := self.take(parameters)) is None:
            return False
        try:
            async with asyncio.timeout(CONNECT_S):
                await asyncio.shield(attempt.done)
        except Exception as error:
            raise Unavailable(f"{self.name} cannot be connected: {reason_of(error)}") from error
        return True

    async def disconnect(self, tenant_id: UUID, user_id: UUID) -> None:
        """Forget a user's account; what was granted at the authorization server stays until it ends there."""
        await self._accounts.disconnect(tenant_id, user_id, self.name)

    async def _connect(self, whose: tuple[UUID, UUID], attempt: _Attempt) -> None:
        async def send(address: str) -> None:
            attempt.state.extend(parse_qs(urlsplit(address).query).get("state", ()))
            attempt.address.set_result(address)

        async def answered() -> AuthorizationCodeResult:
            return await attempt.answer

        storage = Storage(None, self._client())
        provider = self._provider(storage, send, answered)
        try:
            async with asyncio.timeout(_PATIENCE_S), self._session(provider) as client:
                tools = (await client.session.list_tools()).tools
            account = _account(storage, provider)
            if account is None:
                raise NotFound("It grants access to anybody, without an account.")
            if not await self._accounts.connect(*whose, self.name, account, tools):
                raise NotFound("The user has been removed.")
            self._look.set()
            attempt.done.set_result(None)
        except Exception as error:
            log.warning("an account was not connected", server=self.name, reason=reason_of(error))
            attempt.done.set_exception(error)
            attempt.done.exception()  # it may be that nobody asks
        finally:
            self._attempts.pop(whose, None)

    async def _call(self, tool: str, arguments: Mapping[str, Any], turn: OpenTurn) -> str:
        whose = (turn.tenant_id, turn.user_id)
        async with self._locks.setdefault(whose, asyncio.Lock()):
            account = await self._accounts.get(*whose, self.name)
            try:
                if account is not None:
                    return await self._call_with(account, whose, tool, arguments)
            except _MustAsk:
                log.info("an account has to be connected again", server=self.name)
        raise await self._not_connected(*whose)

    async def _call_with(
        self, account: SignedIn, whose: tuple[UUID, UUID], tool: str, arguments: Mapping[str, Any]
    ) -> str:
        must_ask = asyncio.Event()

        async def refuse(_: str) -> None:
            must_ask.set()
            raise _MustAsk

        async def never() -> AuthorizationCodeResult:
            raise _MustAsk

        storage = Storage(account)
        provider = self._provider(storage, refuse, never)
        provider.context.oauth_metadata = account.authorization_server
        provider.context.protected_resource_metadata = account.resource
        try:
            async with self._session(provider) as client:
                seconds = self._config.timeout_s
                result = await client.call_tool(tool, dict(arguments), read_timeout_seconds=seconds)
        except Exception as error:
            if must_ask.is_set():  # however the SDK wraps it
                raise _MustAsk from error
            raise failed_call(self.name, error) from error
        finally:
            if storage.changed and (renewed := _account(storage, provider)):
                await self._accounts.renew(*whose, self.name, renewed)
        return said(result)

    async def _not_connected(self, tenant_id: UUID, user_id: UUID) -> ToolException:
        try:
            return NotConnected(self.name, await self.address(tenant_id, user_id))
        except Unavailable as error:
            return ToolException(str(error))

    @asynccontextmanager
    async def _session(self, provider: OAuthClientProvider) -> AsyncIterator[Client]:
        headers = {name: value.get_secret_value() for name, value in self._config.headers.items()}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=self._config.timeout_s, auth=provider) as http,
            Client(streamable_http_client(self._url, http_client=http)) as client,
        ):
            yield client

    def _provider(self, storage: Storage, send: Any, answered: Any) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(
            client_name="Anamnesis", redirect_uris=[AnyUrl(self._callback)], scope=self._oauth.scope
        )
        return OAuthClientProvider(self._url, metadata, storage, redirect_handler=send, callback_handler=answered)

    def _client(self) -> OAuthClientInformationFull | None:
        if self._oauth.client_id is None:
            return None
        secret = self._oauth.client_secret
        return OAuthClientInformationFull(
            client_id=self._oauth.client_id,
            client_secret=secret.get_secret_value() if secret else None,
            token_endpoint_auth_method="client_secret_post" if secret else "none",
            redirect_uris=[AnyUrl(self._callback)],
        )

    def _connecting(self) -> RegisteredTool:
        async def connect(runtime: ToolRuntime[OpenTurn, dict[str, Any]]) -> str:
            whose = (runtime.context.tenant_id, runtime.context.user_id)
            if await self._accounts.get(*whose, self.name):
                return f"The user's account at {self.name} is connected."
            raise await self._not_connected(*whose)

        tool = StructuredTool(
            name=tool_name(self.name, "connect"),
            description=f"Connect the user's own account at {self.name}, whose other tools need it.",
            args_schema={"type": "object", "properties": {}},
            coroutine=connect,
        )
        return RegisteredTool(tool, timeout_s=CONNECT_S, priority=PRIORITY, experts=self._config.experts)

    def _registered(self, tool: types.Tool) -> RegisteredTool:
        async def call(runtime: ToolRuntime[OpenTurn, dict[str, Any]], **arguments: Any) -> str:
            return await self._call(tool.name, arguments, runtime.context)

        return registered(self.name, self._config, tool, call)


def _account(storage: Storage, provider: OAuthClientProvider) -> SignedIn | None:
    if storage.tokens is None or storage.client is None:
        return None
    return SignedIn(
        tokens=storage.tokens,
        expires_at=storage.expires_at,
        client=storage.client,
        authorization_server=provider.context.oauth_metadata,
        resource=provider.context.protected_resource_metadata,
    )


def _values(parameters: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(parameters).items()}
