"""The files of the console, with the headers that keep everything else out of its pages."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from api.request_bodies import JsonRoute

FILES = Path(__file__).parent / "static"

# Memories, file names and answers may contain hostile text: no script, style or picture of another origin is
# loaded, whatever gets into a page.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data: blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Revalidated by its ETag: a new version of the service is seen at once.
    "Cache-Control": "no-cache",
}

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
    return FileResponse(FILES / "index.html", headers=HEADERS)


class ConsoleFiles(StaticFiles):
    """Modules, styles and strings of the console."""

    def __init__(self) -> None:
        super().__init__(directory=FILES)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if the browser has it."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response
