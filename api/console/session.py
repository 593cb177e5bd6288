"""Sign-in of browsers: a key or token becomes a cookie that no script can read and no other site can use."""

from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access import KnownCaller
from api.problems import documented
from api.request_bodies import JsonRoute
from services.errors import InvalidInput, Unauthenticated

COOKIE = "anamnesis_session"
HEADER = "X-Anamnesis-Console"
"""Sent with every request of the console. A page of another site cannot send it without a CORS preflight."""
_LIFETIME_S = 12 * 3600
_LONGEST_CREDENTIAL = 3800  # browsers drop cookies of more than 4096 bytes with their names and attributes
_PATHS = ("/api/", "/console/session")

router = APIRouter(
    route_class=JsonRoute,
    prefix="/console/session",
    include_in_schema=False,
    responses=documented(HTTPStatus.UNAUTHORIZED, HTTPStatus.UNPROCESSABLE_ENTITY),
)


@router.post("", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
async def sign_in(
    request: Request,
    _: KnownCaller,
    authorization: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Exchange the key or token of the header `Authorization` for a cookie of 12 hours.

    The cookie is accepted only together with the header `X-Anamnesis-Console`, and only below `/api/`.
    """
    credential = authorization.partition(" ")[2].strip()
    if len(credential) > _LONGEST_CREDENTIAL:
        raise InvalidInput("Authorization", f"is longer than {_LONGEST_CREDENTIAL} characters")
    if not credential:
        raise Unauthenticated("Send your key or token in the header: Authorization: Bearer …")
    response = Response(status_code=HTTPStatus.NO_CONTENT)
    response.set_cookie(
        COOKIE,
        credential,
        max_age=_LIFETIME_S,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.delete("", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
async def sign_out(request: Request) -> Response:
    """Remove the cookie."""
    response = Response(status_code=HTTPStatus.NO_CONTENT)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


@dataclass(frozen=True)
class ConsoleSession:
    """ASGI middleware: uses the credential of the cookie if there is no header `Authorization`."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check only the headers."""
        if scope["type"] == "http" and scope["path"].startswith(_PATHS):
            headers = Headers(scope=scope)
            if HEADER in headers and "authorization" not in headers:
                credential = _cookie(headers.get("cookie", ""))
                if credential:
                    scope = {**scope, "headers": list(scope["headers"])}
                    MutableHeaders(scope=scope)["authorization"] = f"Bearer {credential}"
        await self.app(scope, receive, send)


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
