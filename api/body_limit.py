"""Refuse bodies that are too large, before they are read into memory."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Problem, problem_response
from api.schemas import MAX_BODY_BYTES, MAX_IMPORT_BYTES

_OTHER_LIMITS = {"/api/v1/import": MAX_IMPORT_BYTES}
"""Bytes, by path. An import is read as it comes and never held as a whole."""


class TooLarge(HTTPException):
    """Raised while a body is read: FastAPI passes on no other exception from there."""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


async def too_large(request: Request, _: Exception) -> Response:
    """The answer to a body over the limit."""
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    detail = f"The body is larger than {_limit(request.scope)} bytes."
    problem = Problem(title=status.phrase, status=status, detail=detail, code="too_large")
    return problem_response(problem, {"Connection": "close"}, path=request.scope["path"])


class BodyLimit:
    """ASGI middleware: 413 for a body over the limit, whether or not it says its length."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > _limit(scope):
            response = await too_large(Request(scope), TooLarge())
            await response(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > _limit(scope):
                raise TooLarge
            return message

        await self._app(scope, counted, send)


def _limit(scope: Scope) -> int:
    return _OTHER_LIMITS.get(scope["path"], MAX_BODY_BYTES)
