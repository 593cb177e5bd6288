"""Pages that the service serves: the console, the documentation under `/guide`, and the sign-in of browsers.

Their headers keep foreign content out. `make docs` writes the documentation; wheels and images that are built
afterwards contain it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access import CONSOLE_HEADER, KnownCaller
from api.problems import documented
from api.request_bodies import JsonRoute
from services.errors import InvalidInput, Unauthenticated

FILES = Path(__file__).parent / "console" / "static"
SITE = Path(__file__).parent / "guide" / "site"


def _headers(**policy: str) -> dict[str, str]:
    """Return the headers of a page; `policy` adds to what the page may load."""
    usual = {"default-src": "'self'", "object-src": "'none'", "base-uri": "'none'", "frame-ancestors": "'none'"}
    parts = {**usual, **{name.replace("_", "-"): said for name, said in policy.items()}}
    return {
        "Content-Security-Policy": "; ".join(f"{name} {said}" for name, said in parts.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        # Revalidated by its ETag, so that a new version of the service is seen at once.
        "Cache-Control": "no-cache",
    }


# Memories, file names and answers may contain hostile text. Whatever gets into a page, no script, style or picture
# of another origin is loaded.
_CONSOLE = _headers(img_src="'self' data: blob:", form_action="'none'")
# The theme has scripts and styles inside its pages, and a worker that searches.
_GUIDE = _headers(
    script_src="'self' 'unsafe-inline'",
    style_src="'self' 'unsafe-inline'",
    img_src="'self' data:",
    worker_src="'self' blob:",
    form_action="'self'",
)

_MISSING = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Anamnesis: the guide is not built</title>
<body style="font-family: sans-serif; max-width: 40em; margin: 3em auto; line-height: 1.5">
<h1>The guide is not built</h1>
<p>This installation holds no documentation. In a checkout, <code>make docs</code> builds it, and this address
shows it without a restart. Wheels and images that are built afterwards hold it.</p>
<p>The same pages are Markdown files in the folder <code>docs/</code> of the checkout. The API describes itself at
<a href="../docs">/docs</a>, the console is at <a href="../console">/console</a>, and
<code>anamnesis init</code> writes a file with every setting.</p>
<hr>
<h1 lang="zh">文档尚未构建</h1>
<p lang="zh">此安装不含文档。在源码目录中运行 <code>make docs</code> 即可构建，无需重启。
同样的页面以 Markdown 文件形式位于源码的 <code>docs/</code> 目录。</p>
</body>
</html>
"""


router = APIRouter(route_class=JsonRoute, include_in_schema=False)


@router.get("/")
async def root() -> RedirectResponse:
    """Redirect to the console."""
    return RedirectResponse("console")


@router.get("/guide")
async def guide() -> RedirectResponse:
    """Redirect to the guide's first page, relative to this one: it may stand below a path of a proxy's."""
    return RedirectResponse("guide/")


@router.get("/console")
async def console() -> FileResponse:
    """The console's only page; its address after `#` names the screen."""
    return FileResponse(FILES / "index.html", headers=_CONSOLE)


class Pages(StaticFiles):
    """Files with the headers of pages."""

    def __init__(self, folder: Path, headers: Mapping[str, str], **options: Any) -> None:
        super().__init__(directory=folder, **options)
        self._headers = headers

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if the browser has it."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(self._headers)
        return response


def console_files() -> Pages:
    """Return modules, styles and strings of the console."""
    return Pages(FILES, _CONSOLE)


class Guide(Pages):
    """Files of the documentation, or a page that says how to build it."""

    def __init__(self, folder: Path = SITE) -> None:
        super().__init__(folder, _GUIDE, html=True, check_dir=False)
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        if self._folder.is_dir():
            await super().__call__(scope, receive, send)
        else:
            await HTMLResponse(_MISSING, HTTPStatus.NOT_FOUND, headers=_GUIDE)(scope, receive, send)


COOKIE = "anamnesis_session"
_LIFETIME_S = 12 * 3600
_LONGEST_CREDENTIAL = 3800  # browsers drop cookies of more than 4096 bytes with their names and attributes
_PATHS = ("/api/", "/console/session")

session_router = APIRouter(
    route_class=JsonRoute,
    prefix="/console/session",
    include_in_schema=False,
    responses=documented(HTTPStatus.UNAUTHORIZED, HTTPStatus.UNPROCESSABLE_ENTITY),
)


@session_router.post("", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
async def sign_in(
    request: Request, _: KnownCaller, authorization: Annotated[str, Header(include_in_schema=False)] = ""
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


@session_router.delete("", status_code=HTTPStatus.NO_CONTENT, response_class=Response)
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
            if CONSOLE_HEADER in headers and "authorization" not in headers:
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
