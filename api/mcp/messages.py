"""Messages of JSON-RPC before the server reads them: whether a body is one, and if not, what is wrong with it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

from api.request_bodies import parsed
from services.errors import InvalidInput

MOST_BYTES = 1024 * 1024
"""Bytes of a request at most; a tool's arguments are a few sentences."""
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


async def read_body(receive: Receive, most: int) -> tuple[bytes, Receive]:
    """Read a body, up to slightly more than `most` bytes; also return what gives the same request once more."""
    read: list[Message] = []
    size, more = 0, True
    while more and size <= most:
        message = await receive()
        read.append(message)
        size += len(message.get("body", b""))
        more = message["type"] == "http.request" and message.get("more_body", False)
    body = b"".join(message.get("body", b"") for message in read)
    kept = iter(read)

    async def again() -> Message:
        return next(kept, None) or await receive()

    return body, again


async def refusal(body: bytes) -> JSONResponse | None:
    """The error answer to a body that is no message of JSON-RPC 2.0; None = it is one."""
    try:
        message = orjson.loads(body)
        await parsed(body)
    except InvalidInput as error:
        return _error(None, _INVALID_REQUEST, f"Invalid request: {error.field}: {error.message}.")
    except (ValueError, RecursionError):
        return _error(None, _PARSE_ERROR, "Parse error: the body is not valid JSON.")
    if not isinstance(message, dict):
        return _error(None, _INVALID_REQUEST, "Invalid request: the body must be one message, a JSON object.")
    named = message.get("id")
    id_fits = isinstance(named, str | int) and not isinstance(named, bool)
    reason = None
    if "id" in message and not id_fits:
        reason = "id: must be a string or an integer"
    elif message.get("jsonrpc") != "2.0":
        reason = 'jsonrpc: must be "2.0"'
    elif not ({"result", "error"} & message.keys()):
        reason = _wrong_in_request(message)
    if reason is None:
        return None
    return _error(named if id_fits else None, _INVALID_REQUEST, f"Invalid request: {reason}.")


def _wrong_in_request(message: Mapping[str, Any]) -> str | None:
    if not isinstance(message.get("method"), str):
        return "method: must be a string" if "method" in message else "method: is missing"
    if not isinstance(message.get("params") or {}, dict):
        return "params: must be an object"
    return None


def _error(named: str | int | None, code: int, message: str) -> JSONResponse:
    document = {"jsonrpc": "2.0", "id": named, "error": {"code": code, "message": message}}
    return JSONResponse(document, HTTPStatus.BAD_REQUEST)
