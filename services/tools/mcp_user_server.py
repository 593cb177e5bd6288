"""A server of tools at which each user has an account of their own, connected in their browser.

A user is offered the tools that their own account listed, and a call connects with that account.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
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

from services.errors import InvalidInput, NotFound, Unavailable
from services.tools.mcp_accounts import Accounts, SignedIn, Storage, tools_in
from services.tools.mcp_addresses import client_for, guarded
from services.tools.mcp_config import McpServerConfig
from services.tools.mcp_connection import (
    CONNECT_S,
    PRIORITY,
    OnTools,
    failed_call,
    offered,
    reason_of,
    registered,
    said,
    tool_name,
)
from services.tools.mcp_linking import Attempt, Link, Outcome, Returned
from services.tools.tool import NotConnected, RegisteredTool
from state.turn import OpenTurn

_PATIENCE_S = 600.0
"""Seconds within which the user has to agree in the browser."""
_MOST_KNOWN = 256
_CODE = "What the user's browser showed after they agreed, as the user says it; leave it out otherwise."
_Whose = tuple[UUID, UUID]
"""Tenant and user."""

log = structlog.get_logger(__name__)


class _MustAsk(Exception):
    """Raised when the authorization server needs the user to agree."""


class UserMcpServer:
    def __init__(
        self, name: str, config: McpServerConfig, on_tools: OnTools, accounts: Accounts, *, callback_url: str
    ) -> None:
        """Take the address to which the browser returns, unless the configuration names one."""
        assert config.url is not None and config.oauth is not None  # noqa: S101, PT018 — checked when it was read
        self.name = name
        self.reason: str | None = None
        self.listed = asyncio.Event()
        self._config, self._url, self._oauth = config, config.url, config.oauth
        self._on_tools = on_tools
        self._accounts = accounts
        self._callback = config.oauth.callback_url or callback_url
        self._attempts: dict[_Whose, Attempt] = {}
        self._known: OrderedDict[_Whose, tuple[str, list[RegisteredTool]]] = OrderedDict()
        """The lists of the accounts that were used last, with the tools made of them."""
        self._tasks: set[asyncio.Task[None]] = set()
        # Calls of one user follow one another: of two that renew a token at once, one would lose it.
        self._locks: WeakValueDictionary[tuple[UUID, UUID], asyncio.Lock] = WeakValueDictionary()

    async def run(self) -> None:
        """Offer to connect accounts, until it is cancelled."""
        self._on_tools(self.name, [self._connecting()])
        self.listed.set()
        try:
            await asyncio.Event().wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def tools_of(self, tenant_id: UUID, user_id: UUID) -> list[RegisteredTool]:
        """Return the tools that a user's own account lists; none without an account."""
        whose = (tenant_id, user_id)
        try:
            listed = await self._accounts.tools(*whose, self.name)
            self.reason = None
        except Unavailable as error:
            self.reason = reason_of(error)
            return []
        if listed is None:
            self._known.pop(whose, None)
            return []
        kept = self._known.get(whose)
        if kept is None or kept[0] != listed:
            kept = listed, [self._registered(each) for each in offered(self._config, tools_in(listed))]
        self._known[whose] = kept
        self._known.move_to_end(whose)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return kept[1]

    async def link(self, tenant_id: UUID, user_id: UUID, user: str) -> Link:
        """Return the address at which the user agrees; the browser's answer goes to `take`. Raises `Unavailable`
        if the server or its authorization server does not answer as it should."""
        whose = (tenant_id, user_id)
        if (attempt := self._attempts.get(whose)) is None:
            loop = asyncio.get_running_loop()
            attempt = self._attempts[whose] = Attempt(
                user, loop.create_future(), loop.create_future(), loop.create_future()
            )
            task = loop.create_task(self._connect(whose, attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        either: list[asyncio.Future[Any]] = [attempt.address, attempt.done]
        done, _ = await asyncio.wait(either, timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        if attempt.address in done:
            return Link(attempt.address.result(), attempt.secret)
        reason = attempt.done.exception() if attempt.done in done else None
        raise Unavailable(f"{self.name} cannot be connected: {reason_of(reason) if reason else 'no answer'}")

    async def take(self, returned: Returned) -> Outcome | None:
        """Take what a browser returned, and wait for the account; None if the link was not made here. Raises
        `Unavailable`, which says why, if the account could not be connected."""
        state = returned.values.get("state")
        attempt = next((each for each in self._attempts.values() if state in each.states), None)
        if attempt is None:
            return None
        if not attempt.take(returned):
            return Outcome("waits", attempt.user, self.name)
        await self._settled(attempt)
        return Outcome("connected", attempt.user, self.name)

    async def enter(self, tenant_id: UUID, user_id: UUID, code: str) -> bool:
        """Take the code that the user enters, and wait for the account; False if this process made no such link.

        Raises:
            InvalidInput: it is not the one that their browser was shown.
            Unavailable: the account could not be connected; says why.
        """
        if (attempt := self._attempts.get((tenant_id, user_id))) is None:
            return False
        attempt.enter(code)
        await self._settled(attempt)
        return True

    async def _settled(self, attempt: Attempt) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                await asyncio.shield(attempt.done)
        except Exception as error:
            raise Unavailable(f"{self.name} cannot be connected: {reason_of(error)}") from error

    async def disconnect(self, tenant_id: UUID, user_id: UUID) -> None:
        """Forget a user's account. The permission at the authorization server stays until it ends there."""
        await self._accounts.disconnect(tenant_id, user_id, self.name)

    async def _connect(self, whose: _Whose, attempt: Attempt) -> None:
        async def send(address: str) -> None:
            await guarded(self._config).check(httpx2.URL(address))
            attempt.states.extend(parse_qs(urlsplit(address).query).get("state", ()))
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
            attempt.done.set_result(None)
        except Exception as error:
            log.warning("an account was not connected", server=self.name, reason=reason_of(error))
            attempt.done.set_exception(error)
            attempt.done.exception()  # marks the error as seen, because nobody may await it
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
        raise await self._not_connected(turn)

    async def _call_with(self, account: SignedIn, whose: _Whose, tool: str, arguments: Mapping[str, Any]) -> str:
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

    async def _not_connected(self, turn: OpenTurn) -> ToolException:
        try:
            link = await self.link(turn.tenant_id, turn.user_id, turn.input["user_id"])
        except Unavailable as error:
            return ToolException(str(error))
        return NotConnected(self.name, link.address, tool_name(self.name, "connect"))

    @asynccontextmanager
    async def _session(self, provider: OAuthClientProvider) -> AsyncIterator[Client]:
        async with (
            client_for(self._config, provider) as http,
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
        async def connect(runtime: ToolRuntime[OpenTurn, dict[str, Any]], code: str = "") -> str:
            turn = runtime.context
            if code and not await self.enter(turn.tenant_id, turn.user_id, code):
                raise ToolException("No account waits for this code here; connect it again.")
            if await self._accounts.get(turn.tenant_id, turn.user_id, self.name):
                return f"The user's account at {self.name} is connected."
            raise await self._not_connected(turn)

        async def connecting(runtime: ToolRuntime[OpenTurn, dict[str, Any]], code: str = "") -> str:
            try:
                return await connect(runtime, code)
            except (InvalidInput, Unavailable) as error:
                raise ToolException(str(error)) from error

        tool = StructuredTool(
            name=tool_name(self.name, "connect"),
            description=f"Connect the user's own account at {self.name}, whose other tools need it.",
            args_schema={"type": "object", "properties": {"code": {"type": "string", "description": _CODE}}},
            coroutine=connecting,
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
