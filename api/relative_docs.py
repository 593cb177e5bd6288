"""Lets the page `/docs` load its files relative to itself, so that it works below a path of a proxy's."""

from starlette.types import ASGIApp, Receive, Scope, Send

_PAGES = frozenset({"/docs", "/docs/oauth2-redirect"})


class RelativeDocs:
    """ASGI middleware: the page's addresses begin with `./` in place of `/`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the page a root to put before its addresses."""
        if scope["type"] == "http" and scope["path"] in _PAGES:
            scope = {**scope, "root_path": "."}
        await self._app(scope, receive, send)
