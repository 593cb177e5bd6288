"""The documentation under `/guide`: pages that load nothing from other hosts.

`make docs` writes them; wheels and images that are built afterwards hold them.
"""

from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from api.console.pages import HEADERS

SITE = Path(__file__).parent / "site"

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


class Guide(StaticFiles):
    """The files of the site, or a page that says how to build it."""

    def __init__(self, folder: Path = SITE) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        if self._folder.is_dir():
            await super().__call__(scope, receive, send)
        else:
            await HTMLResponse(_MISSING, HTTPStatus.NOT_FOUND, headers=_HEADERS)(scope, receive, send)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if the browser has it."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response
