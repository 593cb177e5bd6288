"""Accounts of users at servers of tools: connected in their browser, listed and disconnected."""

from html import escape
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from api.access import CONSOLE_HEADER, Chatter, ServicesOf
from api.paging import json_router
from api.schemas import Page, StrictModel
from services.conversations.values import Id
from services.errors import InvalidInput, Unavailable

_COOKIE = "anamnesis_link_"
"""Beginning of a cookie's name, which ends with that of a server, as several may be connected at once."""
_MOST_COOKIES = 8
_LIFETIME_S = 600
_LONGEST_ANSWER = 3_000
"""Maximum characters that a browser brings back."""
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
async def connect(server: Server, user_id: User, caller: Chatter, request: Request, response: Response) -> Any:
    """Begin to connect the user's account: the authorization code flow of OAuth 2.1 with PKCE.

    The console's own browser gets a cookie, by which it is known when it comes back. Any other browser is shown a
    code there, and the account is connected once the code has been posted here for the same user.
    """
    caller.act_for(user_id)
    caller.services.mcp_servers.check(server)
    await caller.services.users.make(caller.tenant_id, user_id)
    link = await caller.services.mcp_servers.link(caller.tenant_id, user_id, server)
    if CONSOLE_HEADER in request.headers:
        response.set_cookie(
            f"{_COOKIE}{server}",
            link.secret,
            max_age=_LIFETIME_S,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
    return {"server": server, "authorization_url": link.address}


class CodeRequest(StrictModel):
    """A code that the user's browser was shown after they agreed."""

    user_id: Id
    code: str = Field(min_length=1, max_length=40)


@router.post("/{server}/connect", response_model=AccountView)
async def enter(server: Server, body: CodeRequest, caller: Chatter) -> Any:
    """Connect the account at which the user has agreed in a browser that was shown this code.

    `connected` is false where nothing waits for it.
    """
    caller.act_for(body.user_id)
    done = await caller.services.mcp_servers.enter(caller.tenant_id, body.user_id, server, body.code)
    return {"server": server, "connected": done}


@router.delete("/{server}", status_code=HTTPStatus.NO_CONTENT)
async def disconnect(server: Server, user_id: User, caller: Chatter) -> None:
    """Forget the user's tokens; end what was granted at the server itself as well."""
    caller.act_for(user_id)
    await caller.services.mcp_servers.disconnect(caller.tenant_id, user_id, server)


callback_router = APIRouter(prefix="/api/v1/mcp", include_in_schema=False)


@callback_router.get("/callback", response_class=HTMLResponse)
async def callback(request: Request, services: ServicesOf) -> HTMLResponse:
    """Take a browser back from an authorization server."""
    parameters = request.url.query
    if len(parameters) > _LONGEST_ANSWER or not request.query_params.get("state"):
        raise InvalidInput("state", "is not there, or the address is too long")
    proofs = [value for name, value in request.cookies.items() if name.startswith(_COOKIE)][:_MOST_COOKIES]
    try:
        outcome, code = await services.mcp_servers.take(parameters, proofs)
    except Unavailable as error:
        return HTMLResponse(_PAGE.format(escape(str(error))), HTTPStatus.BAD_GATEWAY, _HEADERS)
    return HTMLResponse(_PAGE.format(_said(outcome, code, proved=bool(proofs))), headers=_HEADERS)


def _said(outcome: Any, code: str, *, proved: bool) -> str:
    if outcome.state == "connected":
        return "Connected. You can close this page."
    if outcome.state == "elsewhere" and proved:
        return "Passed on: it is connected if it was asked for in the last ten minutes; if not, ask for it again."
    whose = f"“{escape(outcome.user)}” wants" if outcome.user else "A user of this service wants"
    where = escape(outcome.server) or "the server that you come from"
    return (
        f"{whose} to use your account at {where} from here. If you have asked for that yourself, finish it there "
        f"with this code: <strong>{code}</strong></p><p>If somebody sent you the link, close this page, and tell "
        "nobody the code: with it they could use your account."
    )
