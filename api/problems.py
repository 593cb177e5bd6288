"""Errors as RFC 9457 problem documents, and under `/v1` in the form of OpenAI's API."""

import asyncio
import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.requests import HTTPConnection
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from services.conversations.turn_values import KEY
from services.errors import (
    OF_THE_INPUT,
    AnamnesisError,
    CallerError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from services.knowledge.document import UnknownKind
from services.platform.metrics import TURNS_REFUSED
from services.validation import accepted_fields, is_known, plain_reason
from state.events import TurnEvent

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
_TYPE = re.compile(r"str|int|float|bool|[a-z-]{1,40}\[.*\]")
OPENAI_PATHS = "/v1/"
"""Beginning of paths whose errors have the form of OpenAI's API."""
STARTING_TURNS = frozenset(
    {
        "/api/v1/chat",
        "/api/v1/chat/stream",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/api/v1/ui/chat",
        "/api/v1/ui/ag-ui",
    }
)
"""Paths whose POST starts a turn. WebSockets are not among them: each of their turns is checked separately."""

ANTHROPIC_PATHS = "/v1/messages"
"""Beginning of paths whose errors have the form of Anthropic's API."""

_UNREADABLE = "body: cannot be read as JSON; it must be in UTF-8, and without endless digits or nesting."

_LINGER_S = 1.0
_SHORT_REST_BYTES = 256 * 1024
_MOST_LONG_RESTS = 8
_thrown_away: set[Receive] = set()
"""Connections on which the long rest of a body is being discarded."""

_STATUS: tuple[tuple[type[AnamnesisError], HTTPStatus], ...] = (
    (UnknownKind, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Unauthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotFound, HTTPStatus.NOT_FOUND),
    (RateLimited, HTTPStatus.TOO_MANY_REQUESTS),
    (Conflict, HTTPStatus.CONFLICT),
    (CallerError, HTTPStatus.BAD_REQUEST),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""HTTP status of each kind of error; the first match counts, and other errors have status 500."""


class Reason(BaseModel):
    """Why a field of the request is not accepted, for clients with words of their own."""

    field: str
    code: str = Field(
        description="As pydantic names it, such as `string_too_long`; `other` = only `detail` says it."
    )
    limits: dict[str, int | float | str] = Field(description="Such as `max_length`.")


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    reasons: list[Reason] = Field([], description="With `invalid_input`: why each field is refused.")
    param: str | None = Field(None, exclude=True)
    """The part of the request that is wrong, where one is."""

    @classmethod
    def of(cls, status: HTTPStatus, code: str, detail: str, param: str | None = None) -> "Problem":
        """Return a problem with this status."""
        return cls(title=status.phrase, status=status, detail=detail, code=code, param=param)


def documented(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of these error answers."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    return {int(status): {"description": status.phrase, "content": content} for status in statuses}


CONFLICT = documented(HTTPStatus.CONFLICT)
NOT_FOUND = documented(HTTPStatus.NOT_FOUND)


def problem_of(error: AnamnesisError) -> Problem:
    """Return the problem document for an error of the service."""
    status = next((s for kind, s in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    detail = f"{error.field}: {error.message}" if isinstance(error, InvalidInput) else error.message
    code = getattr(error, "failure", error.code)
    status = HTTPStatus.BAD_REQUEST if code in OF_THE_INPUT else status
    problem = Problem.of(status, code, detail, error.field if isinstance(error, InvalidInput) else None)
    if isinstance(error, InvalidInput):
        problem.reasons = [Reason(field=error.field, code="other", limits={})]
    return problem


def problem_response(problem: Problem, headers: dict[str, str] | None = None, *, path: str = "") -> JSONResponse:
    """Return the HTTP response with a problem, in the form for the path; a refused turn is counted."""
    if path in STARTING_TURNS:
        TURNS_REFUSED.labels(problem.code).inc()
    return _in_form_of(path, problem, headers)


def _in_form_of(path: str, problem: Problem, headers: dict[str, str] | None) -> JSONResponse:
    if path.startswith(ANTHROPIC_PATHS):
        return JSONResponse(anthropic_error(problem), _openai_status(problem), headers)
    if path.startswith(OPENAI_PATHS):
        return JSONResponse(openai_error(problem), _openai_status(problem), headers)
    unsaid = None if problem.reasons else {"reasons"}
    return JSONResponse(problem.model_dump(exclude=unsaid), problem.status, headers, media_type=MEDIA_TYPE)


def _status_of_failure(code: str) -> HTTPStatus:
    """Return the HTTP status for a turn that ended with an error of this code."""
    if code in OF_THE_INPUT or code == "request_budget_exceeded":
        return HTTPStatus.BAD_REQUEST
    if code.startswith("llm_"):
        return HTTPStatus.BAD_GATEWAY
    if code in {"cancelled", "interrupted_by_message"}:
        return HTTPStatus.CONFLICT
    return HTTPStatus.INTERNAL_SERVER_ERROR if code == "internal" else HTTPStatus.SERVICE_UNAVAILABLE


def problem_of_failed(last: TurnEvent) -> Problem:
    """Return the problem document for a turn that ended with an error."""
    code, message = last.content["code"], last.content["message"]
    return Problem.of(_status_of_failure(code), code, message, last.content.get("param"))


def response_of_failed(
    last: TurnEvent, headers: Mapping[str, str] | None = None, *, path: str = ""
) -> JSONResponse:
    """Return the HTTP response to a request whose turn ended with an error, in the form for the path."""
    retry = {"Retry-After": str(last.content.get("retry_after_s", 1))} if last.content["retryable"] else {}
    return _in_form_of(path, problem_of_failed(last), {**(headers or {}), **retry})


_KINDS = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def openai_error(problem: Problem) -> dict[str, Any]:
    """Return a problem as OpenAI's error document."""
    usual = "server_error" if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    kind = _KINDS.get(HTTPStatus(problem.status), usual)
    return {"error": {"message": problem.detail, "type": kind, "param": problem.param, "code": problem.code}}


def anthropic_error(problem: Problem) -> dict[str, Any]:
    """Return a problem as Anthropic's error document."""
    usual = "api_error" if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    kinds = {
        **_KINDS,
        HTTPStatus.NOT_FOUND: "not_found_error",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
        HTTPStatus.SERVICE_UNAVAILABLE: "overloaded_error",
    }
    kind = kinds.get(HTTPStatus(problem.status), usual)
    # This tells Anthropic's SDK to send the whole history.
    threads = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    more = {"details": threads} if problem.param == "thread" else {}
    return {"type": "error", "error": {"type": kind, "message": problem.detail, **more}}


def _openai_status(problem: Problem) -> int:
    """Return the status that OpenAI's API has: 400 for invalid values, except 422 for a key of another message."""
    is_invalid = problem.status == HTTPStatus.UNPROCESSABLE_ENTITY and problem.param != KEY
    return HTTPStatus.BAD_REQUEST if is_invalid else problem.status


def response_of(error: AnamnesisError, *, path: str = "") -> JSONResponse:
    """Return the HTTP response for an error of the service, in the form for the path."""
    return problem_response(problem_of(error), _headers(error), path=path)


def _headers(error: AnamnesisError) -> dict[str, str] | None:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, RateLimited):
        return {"Retry-After": str(error.retry_after_s)}
    wait = math.ceil(getattr(error, "retry_after_s", None) or 1)
    return {"Retry-After": str(wait)} if error.retryable else None


async def answer_early(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send an answer although the client may still be sending its body; then close the connection.

    What arrives for a moment after the answer is discarded. Closing at once would reset the connection, and many
    clients would never see the answer. When hundreds keep sending, only some are read to the end.
    """
    response.headers["Connection"] = "close"

    async def sent(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({**message, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await _throw_away(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    await response(scope, receive, sent)


async def _throw_away(receive: Receive) -> None:
    """Receive and discard the rest of a body; a long rest only while few others are being read."""
    size = 0
    while (arrived := await receive()).get("more_body", False):
        size += len(arrived["body"])
        if size > _SHORT_REST_BYTES:
            break
    else:
        return
    if len(_thrown_away) >= _MOST_LONG_RESTS:
        await asyncio.sleep(_LINGER_S)
        return
    _thrown_away.add(receive)
    try:
        while (await receive()).get("more_body", False):
            pass
    finally:
        _thrown_away.discard(receive)


def invalid_fields(errors: Sequence[Any], schemas: Mapping[str, Mapping[str, Any]]) -> Problem:
    """Return the problem document for a request that does not match its schema; it names every wrong field.

    Args:
        errors: Errors of pydantic.
        schemas: JSON schema of each part of the request (`body`, `query`); the only part is named `body`.
    """
    if any(error["type"] == "json_invalid" for error in errors):
        status, code, detail = HTTPStatus.BAD_REQUEST, "malformed", "The body is not valid JSON."
    else:
        status, code = HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input"
        detail = "; ".join(f"{_name(error['loc'])}: {_reason(error, schemas)}" for error in errors)
    problem = Problem.of(status, code, detail, _name(errors[0]["loc"]) if code == "invalid_input" else None)
    if code == "invalid_input":
        problem.reasons = [_coded(error) for error in errors]
    return problem


def _coded(error: Any) -> Reason:
    code = error["type"] if is_known(error) else "other"
    limits = {
        name: value for name, value in (error.get("ctx") or {}).items() if isinstance(value, int | float | str)
    }
    return Reason(field=_name(error["loc"]), code=code, limits=limits)


def _name(location: tuple[int | str, ...]) -> str:
    # The first name may be that of the part; a field further on may have such a name too.
    inside = location[1:] if location[:1] and location[0] in {"body", "query", "path", "header"} else location
    # For a field with several types pydantic tries each, and adds the type's name after the field's.
    parts = [str(part) for part in inside if not _TYPE.fullmatch(str(part))]
    return ".".join(parts) or "body"


def _reason(error: Any, schemas: Mapping[str, Mapping[str, Any]]) -> str:
    part, inside = "body", error["loc"]
    if inside[:1] and inside[0] in schemas:
        part, inside = str(inside[0]), inside[1:]
    return plain_reason(error, accepted_fields(schemas.get(part, {}), inside))


def _schemas_of(route: APIRoute) -> dict[str, dict[str, Any]]:
    """Return the schemas of a route's body, and of a query that is one model."""
    parameters = {"body": route.dependant.body_params, "query": route.dependant.query_params}
    alone = {part: fields[0].field_info for part, fields in parameters.items() if len(fields) == 1}
    annotations: dict[str, Any] = {part: field.annotation for part, field in alone.items()}
    return {part: _schema_of(annotation) for part, annotation in annotations.items()}


@lru_cache(maxsize=256)
def _schema_of(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(annotation).json_schema()


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    @app.exception_handler(AnamnesisError)
    async def ours(connection: HTTPConnection, error: AnamnesisError) -> JSONResponse | None:
        if isinstance(connection, WebSocket) and isinstance(error, CallerError):
            # Before the WebSocket is accepted this refuses the handshake with 403.
            await connection.close(1008, error.message)
            return None
        return response_of(error, path=connection.url.path)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        route = request.scope.get("route")
        problem = invalid_fields(error.errors(), _schemas_of(route) if isinstance(route, APIRoute) else {})
        return problem_response(problem, path=request.url.path)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, AnamnesisError):
            return response_of(error.__cause__, path=request.url.path)
        status = HTTPStatus(error.status_code)
        code = status.phrase.lower().replace(" ", "_")
        detail = str(error.detail)
        if error.status_code == HTTPStatus.BAD_REQUEST and isinstance(
            error.__cause__, ValueError | RecursionError
        ):
            # FastAPI could not parse it, and gives no reason.
            code, detail = "malformed", _UNREADABLE
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED} and detail == status.phrase:
            detail = f"{request.method} {request.url.path} is not supported here."
        headers = dict(error.headers) if error.headers else None
        return problem_response(Problem.of(status, code, detail), headers, path=request.url.path)

    @app.exception_handler(ClientDisconnect)
    async def broken_off(request: Request, _: ClientDisconnect) -> Response:
        log.info("request broken off by its client", path=request.url.path)
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody reads it

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> JSONResponse:
        log.error("request failed", path=request.url.path, exc_info=error)
        detail = "Something went wrong on our side."
        problem = Problem.of(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail)
        return problem_response(problem, path=request.url.path)
