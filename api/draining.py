"""While the service stops, open connections are still served, and closed after their response."""

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Draining:
    """ASGI middleware: asks clients to reconnect, which takes them to another process."""

    def __init__(self, app: ASGIApp, *, draining: Callable[[], bool]) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Change only one header."""
        if scope["type"] != "http" or not self._draining():
            await self._app(scope, receive, send)
            return

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, closing)
