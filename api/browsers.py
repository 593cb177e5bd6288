"""Pages of trusted origins: their browsers may call `/v1` and the front ends' protocols, and read the answers.

This module grants no access to other origins; `SameSite` decides about those. Cookies are not allowed, so a page
needs a key like any other client.
"""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_PATHS = ("/v1/", "/api/v1/ui/")
_METHODS = ("GET", "POST", "DELETE")
_EXPOSED = (
    *("X-Session-Id", "X-Turn-Id", "X-Anamnesis-Memory", "X-Anamnesis-Ignored", "X-Anamnesis-Cut"),
    *("X-Vercel-AI-UI-Message-Stream", "Retry-After", "WWW-Authenticate", "Accept-Encoding", "Location"),
)
"""Headers of answers that a page may read in addition to those that it always may."""


class Browsers:
    """ASGI middleware: answers preflights, which carry no key, and names the page's origin in answers."""

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        self._app = app
        self._named = CORSMiddleware(
            app,
            allow_origins=sorted(origins),
            allow_methods=_METHODS,
            allow_headers=["*"],  # SDKs send a dozen headers of their own
            allow_private_network=True,
            expose_headers=_EXPOSED,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the path only."""
        is_api = scope["type"] == "http" and scope["path"].startswith(_PATHS)
        await (self._named if is_api else self._app)(scope, receive, send)
