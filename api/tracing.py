"""The span of a request that starts a turn, and the id of its trace in the answer."""

from opentelemetry.trace import SpanKind
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.admission import STARTING_TURNS
from services.platform import span_names as names
from services.platform.tracing import mark_failed, span, trace_id

HEADER = "X-Trace-Id"
_SERVER_ERROR = 500


class RequestSpans:
    """ASGI middleware: a span for each request that starts a turn, within the trace that its caller names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the span until the last byte of the answer."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in STARTING_TURNS:
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        about = {names.METHOD: "POST", names.PATH: path}
        with span(f"POST {path}", about, kind=SpanKind.SERVER, parent=Headers(scope=scope)) as current:

            async def send_with_id(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    current.set_attribute(names.STATUS, status)
                    if status >= _SERVER_ERROR:
                        mark_failed(current, str(status))
                    MutableHeaders(scope=message)[HEADER] = trace_id() or ""
                await send(message)

            await self._app(scope, receive, send_with_id)
