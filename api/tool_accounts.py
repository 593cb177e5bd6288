"""Accounts of users at servers of tools: connected in their browser, listed and disconnected."""

from html import escape
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from api.access import Chatter, ServicesOf
from api.paging import json_router
from api.schemas import Page
from services.conversations.values import Id
from services.errors import InvalidInput, Unavailable

_LONGEST_ANSWER = 4_000
"""Characters of what a browser brings back."""
_PAGE = '<!doctype html><meta charset="utf-8"><title>Anamnesis</title><p>{}</p>'
_HEADERS = {"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "no-referrer"}

router = json_router("/api/v1/mcp", "tools", HTTPStatus.NOT_FOUND)

User = Annotated[Id, Query(description="The user whose account it is.")]
Server = Annotated[str, Path(max_length=32, description="Its name in ANAMNESIS_MCP_SERVERS.")]


class AccountView(BaseModel):
    """An account of a user at a server of tools."""

    server: str
    connected: bool


class ConnectView(BaseModel):
    """Where the user agrees."""

    server: str
    authorization_url: str = Field(description="To be opened in the user's browser, within ten minutes.")


@router.get("", response_model=Page[AccountView])
async def accounts(user_id: User, caller: Chatter) -> Any:
    """The servers at which users have accounts of their own, and whether this user has connected theirs."""
    caller.act_for(user_id)
    found = await caller.services.mcp_servers.connected(caller.tenant_id, user_id)
    return {"items": [{"server": name, "connected": connected} for name, connected in found.items()]}


@router.get("/{server}/connect", response_model=ConnectView)
async def connect(server: Server, user_id: User, caller: Chatter) -> Any:
    """Begin to connect the user's account: the authorization code flow of OAuth 2.1 with PKCE."""
    caller.act_for(user_id)
    caller.services.mcp_servers.check(server)
    await caller.services.users.make(caller.tenant_id, user_id)
    address = await caller.services.mcp_servers.address(caller.tenant_id, user_id, server)
    return {"server": server, "authorization_url": address}


@router.delete("/{server}", status_code=HTTPStatus.NO_CONTENT)
async def disconnect(server: Server, user_id: User, caller: Chatter) -> None:
    """Forget the user's tokens; end what was granted at the server itself as well."""
    caller.act_for(user_id)
    await caller.services.mcp_servers.disconnect(caller.tenant_id, user_id, server)


callback_router = APIRouter(prefix="/api/v1/mcp", include_in_schema=False)


@callback_router.get("/callback", response_class=HTMLResponse)
async def callback(request: Request, services: ServicesOf) -> HTMLResponse:
    """Take a browser back from an authorization server; what it carries is known to nobody else."""
    parameters = request.url.query
    if len(parameters) > _LONGEST_ANSWER or not request.query_params.get("state"):
        raise InvalidInput("state", "is not there, or the address is too long")
    try:
        is_here = await services.mcp_servers.finish(parameters)
    except Unavailable as error:
        return HTMLResponse(_PAGE.format(escape(str(error))), HTTPStatus.BAD_GATEWAY, _HEADERS)
    said = "Connected." if is_here else "Passed on: it is connected if it was asked for in the last ten minutes."
    return HTMLResponse(_PAGE.format(f"{said} You can close this page."), headers=_HEADERS)
