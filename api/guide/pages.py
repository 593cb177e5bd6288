"""The documentation under `/guide`: pages that load nothing from other hosts, served from one archive.

`make docs` writes the archive; wheels and images that are built afterwards hold it. As one piece it takes a
quarter of what its pages would.
"""

import asyncio
import mimetypes
import re
import tarfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from api.console.pages import HEADERS

ARCHIVE = Path(__file__).parent / "site.tar.xz"

# The theme has scripts and styles within its pages, and searches in a worker.
_CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {**HEADERS, "Content-Security-Policy": _CONTENT_SECURITY_POLICY}
_FIRST, _NOT_FOUND = "index.html", "404.html"
_FROM_THE_ROOT = re.compile(rb'((?:=|: |URL\()")/(?!/)')

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


@dataclass(frozen=True)
class _Site:
    etag: str
    files: dict[str, bytes]
    """By path."""


class Guide:
    """ASGI application: the files of the site, or a page that says how to build it."""

    def __init__(self, archive: Path = ARCHIVE) -> None:
        self._archive = archive
        self._site: _Site | None = None
        self._reading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        await (await self._response(Request(scope)))(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            return Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if not path:
            return RedirectResponse("guide/")
        async with self._reading:
            site = await self._current()
        if site is None:
            return HTMLResponse(_MISSING, HTTPStatus.NOT_FOUND, headers=_HEADERS)
        name = path.removeprefix("/")
        if not name or name.endswith("/"):
            name += _FIRST
        if name not in site.files:
            return HTMLResponse(_not_found(site, name), HTTPStatus.NOT_FOUND, headers=_HEADERS)
        headers = {**_HEADERS, "ETag": site.etag}
        if request.headers.get("if-none-match") == site.etag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(site.files[name], headers=headers, media_type=kind)

    async def _current(self) -> _Site | None:
        """Return the site as it is now, read again if it was built again."""
        try:
            about = self._archive.stat()
        except FileNotFoundError:
            return None
        etag = f'"{about.st_mtime_ns:x}-{about.st_size:x}"'
        if self._site is None or self._site.etag != etag:
            self._site = _Site(etag, await asyncio.to_thread(_read, self._archive))
        return self._site


def _not_found(site: _Site, name: str) -> bytes:
    """Return the page for a missing page, its addresses relative: it cannot know below which prefix it is read."""
    up = b"../" * name.count("/") or b"./"
    return _FROM_THE_ROOT.sub(lambda found: found[1] + up, site.files.get(_NOT_FOUND, b""))


def _read(archive: Path) -> dict[str, bytes]:
    files = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            if (content := opened.extractfile(member)) is not None:
                files[member.name.removeprefix("./")] = content.read()
    return files
