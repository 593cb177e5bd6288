"""Refuse bodies that are too large, before they are read into memory."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Problem, problem_response


class _TooLarge(Exception):
    pass


class BodyLimit:
    """ASGI middleware: 413 for a body over the limit, whether or not it says its length."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise _TooLarge
            return message

        try:
            await self._app(scope, counted, send)
        except _TooLarge:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        detail = f"The body is larger than {self._max_bytes} bytes."
        problem = Problem(title=status.phrase, status=status, detail=detail, code="too_large")
        await problem_response(problem, {"Connection": "close"})(scope, receive, send)
