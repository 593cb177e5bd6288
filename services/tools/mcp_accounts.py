"""Accounts that users have connected at servers of tools, and how the SDK signs in with them."""

import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from mcp import types
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from psycopg.rows import tuple_row
from pydantic import BaseModel, TypeAdapter

from services.encryption.marks import Words
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database

_EARLY_S = 30.0
"""Seconds before a token expires at which it is renewed."""
_TOOLS = TypeAdapter(list[types.Tool])

_GET: LiteralString = """
SELECT signed_in FROM tool_accounts
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND server = %(server)s
"""
_PUT: LiteralString = """
INSERT INTO tool_accounts (tenant_id, user_id, server, signed_in, tools)
SELECT %(tenant_id)s, id, %(server)s, %(signed_in)s, %(tools)s FROM users
WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s
ON CONFLICT (user_id, server, tenant_id) DO UPDATE SET
    signed_in = EXCLUDED.signed_in, tools = EXCLUDED.tools, updated_at = clock_timestamp()
RETURNING server
"""
_RENEW: LiteralString = """
UPDATE tool_accounts SET signed_in = %(signed_in)s, updated_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND server = %(server)s RETURNING server
"""
_REMOVE: LiteralString = """
DELETE FROM tool_accounts WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND server = %(server)s
RETURNING server
"""
_OF_USER: LiteralString = """
SELECT t.server FROM tool_accounts t JOIN users u ON u.id = t.user_id AND u.tenant_id = t.tenant_id
WHERE t.tenant_id = %(tenant_id)s AND u.external_id = %(user)s
"""
_TOOLS_OF: LiteralString = """
SELECT tools FROM tool_accounts
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND server = %(server)s
"""
_TELL: LiteralString = "SELECT pg_notify('anamnesis_turns', 'account:' || %(coded)s)"


class SignedIn(BaseModel):
    """Tokens and client registration with which later calls sign in again without the user."""

    tokens: OAuthToken
    expires_at: float | None = None
    """Seconds since the epoch."""
    client: OAuthClientInformationFull
    authorization_server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class Accounts:
    """Reads and writes them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def of_user(self, tenant_id: UUID, user: str) -> set[str]:
        """Return the names of the servers at which a user has connected an account."""
        rows = await self.database.fetch(tenant_id, _OF_USER, {"tenant_id": tenant_id, "user": user}, tuple_row)
        return {row[0] for row in rows}

    async def get(self, tenant_id: UUID, user_id: UUID, server: str) -> SignedIn | None:
        """Return an account; None = it is not connected."""
        rows = await self.database.fetch(tenant_id, _GET, _named(tenant_id, user_id, server), tuple_row)
        return SignedIn.model_validate_json(rows[0][0]) if rows else None

    async def connect(
        self, tenant_id: UUID, user_id: UUID, server: str, account: SignedIn, tools: Sequence[types.Tool]
    ) -> bool:
        """Keep an account with the tools that it lists; False = the user has been removed."""
        listed = _TOOLS.dump_json(list(tools), exclude_none=True, by_alias=True).decode()
        values = {**_named(tenant_id, user_id, server), "signed_in": _sealed(account), "tools": listed}
        return bool(await self.database.fetch(tenant_id, _PUT, values, tuple_row))

    async def renew(self, tenant_id: UUID, user_id: UUID, server: str, account: SignedIn) -> None:
        """Keep new tokens of an account that is still connected."""
        values = {**_named(tenant_id, user_id, server), "signed_in": _sealed(account)}
        await self.database.fetch(tenant_id, _RENEW, values, tuple_row)

    async def disconnect(self, tenant_id: UUID, user_id: UUID, server: str) -> None:
        """Remove an account."""
        await self.database.fetch(tenant_id, _REMOVE, _named(tenant_id, user_id, server), tuple_row)

    async def tell_processes(self, what: str) -> None:
        """Tell the other processes that a browser or a user has returned something."""
        coded = urlsafe_b64encode(what.encode()).decode()
        await self.database.fetch(DEFAULT_TENANT, _TELL, {"coded": coded}, tuple_row)

    async def tools(self, tenant_id: UUID, user_id: UUID, server: str) -> str | None:
        """Return the tools that a user's own account listed when it was connected, as JSON; None = it has none."""
        rows = await self.database.fetch(tenant_id, _TOOLS_OF, _named(tenant_id, user_id, server), tuple_row)
        return str(rows[0][0]) if rows else None


def tools_in(listed: str) -> list[types.Tool]:
    """Return the tools that were stored as JSON."""
    return _TOOLS.validate_json(listed)


class Storage:
    """The SDK's `TokenStorage` of one connection; `changed` tells that new tokens came."""

    def __init__(self, account: SignedIn | None = None, client: OAuthClientInformationFull | None = None) -> None:
        """Take the account as far as it is known; `client` is one that was registered by hand."""
        self.tokens = account.tokens if account else None
        self.expires_at = account.expires_at if account else None
        self.client = account.client if account else client
        self.changed = False

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens. An expired access token is left out, so that the SDK renews it."""
        ended = self.expires_at is not None and self.expires_at - _EARLY_S < time.time()
        return self.tokens.model_copy(update={"access_token": ""}) if self.tokens and ended else self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take new ones."""
        self.tokens, self.changed = tokens, True
        self.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registered client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take a client that was registered."""
        self.client = client_info


def _named(tenant_id: UUID, user_id: UUID, server: str) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "user_id": user_id, "server": server}


def _sealed(account: SignedIn) -> Words:
    return Words(account.model_dump_json(exclude_none=True))
