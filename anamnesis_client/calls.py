"""Requests, and how their answers are read. Nothing is sent here: both clients send these requests."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx

from anamnesis_client.errors import ClientError, ServiceError, Unreachable
from anamnesis_client.models import Answer, FoundMemory, MemoryChange, Section, WrittenMemory

MemoryKind = Literal["preference", "decision", "context", "outcome"]
LINES = "application/x-ndjson"
NOT_OURS = "not_ours"
"""Error code if something other than the service answers, for example a proxy."""

IMPORT_BYTES = 256 * 1024 * 1024
"""Maximum bytes of one request of an import; the service accepts four times as many."""
PAGE = 200
"""Maximum items that the service sends at once."""

Result = TypeVar("Result")


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own, which no proxy of the environment can reach."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One request, and the function that reads its answer."""

    method: str
    path: str
    read: Callable[[Any], Result] = lambda found: found
    json: Any = None
    content: Any = None
    """Body that is not JSON."""
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Whether it may be sent again when the connection breaks."""
    outlasts: bool = True
    """Whether it may be sent again when the answer is late; the service does not begin the same work twice."""

    def may_follow(self, failure: ClientError) -> bool:
        """Return whether it may be sent again after a failure."""
        if not isinstance(failure, Unreachable):
            return True
        return self.repeatable and (self.outlasts or not failure.timed_out)


def endpoint(method: str, path: Sequence[object], json: Any, params: Mapping[str, Any] | None) -> Call[Any]:
    """Return any request of the API, by the segments of its path below `/api/v1`."""
    query = {name: _text(value) for name, value in (params or {}).items() if value is not None}
    segments = "/".join(quote(str(each), safe="") for each in path)
    return Call(method, f"/api/v1/{segments}", json=json, params=query, repeatable=method != "POST")


def document(base: str, source: str, data: bytes) -> Call[Mapping[str, Any]]:
    """Return the request that takes a document into a knowledge base; the ending of its name says its kind."""
    path = f"/api/v1/knowledge-bases/{quote(base, safe='')}/documents"
    return Call("POST", path, content=data, params={"source": source})


def chat_body(message: str, user: str, session: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a message; `options` are fields of the API, and those that are None are left out."""
    return {"user_id": user, "session_id": session, "message": message, **_given(options)}


def chat(body: Mapping[str, Any], key: str | None) -> Call[Answer]:
    """Return the request for a whole answer to a message; the key makes it safe to repeat."""
    headers = {"Idempotency-Key": key or str(uuid4())}
    return Call("POST", "/api/v1/chat", Answer.of, json=body, headers=headers)


def recall(
    user: str, query: str, limit: int, as_of: datetime | None, options: Mapping[str, Any]
) -> Call[list[FoundMemory]]:
    """Return a search of memory, now or as of a moment; options that are None are left out."""
    body = {"query": query, "top_k": limit, **_moment(as_of), **_given(options)}
    return Call("POST", f"{_of(user)}/episodes/search", lambda found: _items(found, FoundMemory.of), json=body)


def remember(user: str, text: str, kind: MemoryKind) -> Call[WrittenMemory]:
    """Return the request to write a memory."""
    body = {"content": text, "episode_type": kind}
    return Call("POST", f"{_of(user)}/episodes", WrittenMemory.of, json=body, repeatable=False)


def forget(user: str, what: str, keep: str, *, takes_all: bool) -> Call[MemoryChange]:
    """The call that forgets what a text describes."""
    body = {"what": what, "all": takes_all, **({"keep": keep} if keep else {})}
    return Call("POST", f"{_of(user)}/memory/forget", MemoryChange.of, json=body)


def undo(user: str, operation_id: str) -> Call[None]:
    """Return the request to undo a change of memory."""
    path = f"{_of(user)}/memory-operations/{quote(operation_id, safe='')}/undo"
    return Call("POST", path, lambda _: None)


def approve(turn_id: str, approval_id: str, *, approved: bool) -> Call[None]:
    """Return the user's answer to the question whether a tool may be called."""
    body = {"approval_id": approval_id, "approved": approved}
    return Call("POST", f"/api/v1/turns/{quote(turn_id, safe='')}/approve", lambda _: None, json=body)


def pin(user: str, memory_id: str, *, pinned: bool) -> Call[None]:
    """Return the request to pin or unpin a memory."""
    path = f"{_of(user)}/episodes/{quote(memory_id, safe='')}/pin"
    return Call("PUT" if pinned else "DELETE", path, lambda _: None)


def profile(user: str, as_of: datetime | None) -> Call[list[Section]]:
    """Return the request for core memory, now or as of a moment."""
    return Call("GET", f"{_of(user)}/core-memory", lambda found: _items(found, Section.of), params=_moment(as_of))


def store(user: str, operations: Sequence[Mapping[str, Any]], space: str | None) -> Call[list[Any]]:
    """Return operations on the items of a user as one request."""
    body = {"user_id": user, "space": space, "operations": list(operations)}
    writes = any(each["op"] == "put" for each in operations)

    def results(found: Any) -> list[Any]:
        return list(found["results"])

    return Call("POST", "/api/v1/store/batch", results, json=body, repeatable=not writes, outlasts=False)


def export(user: str, space: str | None) -> Call[Any]:
    """Return the request for everything that is stored of a user, or in one space."""
    return Call("GET", f"{_of(user)}/export", params={} if space is None else {"space": space})


def import_part(content: Any) -> Call[Any]:
    """Return a part of an import as a request."""
    return Call("POST", "/api/v1/import", content=content, headers={"Content-Type": LINES})


def content_of(response: httpx.Response) -> Any:
    """Return the content of a successful answer; None if it has none.

    Raises:
        ServiceError: The answer is not from the service.
    """
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise ServiceError(response.status_code, NOT_OURS, response.text[:200]) from None


def error_of(response: httpx.Response) -> ServiceError:
    """Return the error in an answer that was read and is not successful."""
    retry_after = response.headers.get("Retry-After", "")
    seconds = float(retry_after) if retry_after.isdecimal() else None
    try:
        found = response.json()
        return ServiceError(response.status_code, str(found["code"]), str(found["detail"]), seconds)
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        return ServiceError(response.status_code, NOT_OURS, response.text[:200] or response.reason_phrase, seconds)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _moment(as_of: datetime | None) -> dict[str, str]:
    return {} if as_of is None else {"as_of": as_of.isoformat()}


def _of(user: str) -> str:
    return f"/api/v1/users/{quote(user, safe='')}"


def _items(found: Any, read: Callable[[Mapping[str, Any]], Result]) -> list[Result]:
    return [read(each) for each in found["items"]]
