"""Requests and how their answers are read, without sending anything: both clients send these."""

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
"""Code of the error that what answers is not the service, but for example a proxy."""

IMPORT_BYTES = 256 * 1024 * 1024
"""The largest request of an import that this client sends; the service takes at most four times as many bytes."""
PAGE = 200
"""Items that the service sends at once, at the most."""

Result = TypeVar("Result")


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own, which no proxy of the environment can reach."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Call(Generic[Result]):
    """One request, and what is made of its answer."""

    method: str
    path: str
    read: Callable[[Any], Result] = lambda found: found
    json: Any = None
    content: Any = None
    """Its body, where that is no JSON."""
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Whether it may be sent once more when the connection breaks."""
    outlasts: bool = True
    """Whether it may be sent once more when the answer is late: what was begun goes on, and is not begun again."""

    def may_follow(self, failure: ClientError) -> bool:
        """Return whether it may be sent once more after a failure."""
        if not isinstance(failure, Unreachable):
            return True
        return self.repeatable and (self.outlasts or not failure.timed_out)


def endpoint(method: str, path: Sequence[object], json: Any, params: Mapping[str, Any] | None) -> Call[Any]:
    """Any request of the API, by the segments of its path below `/api/v1`."""
    query = {name: _text(value) for name, value in (params or {}).items() if value is not None}
    segments = "/".join(quote(str(each), safe="") for each in path)
    return Call(method, f"/api/v1/{segments}", json=json, params=query, repeatable=method != "POST")


def document(base: str, source: str, data: bytes) -> Call[Mapping[str, Any]]:
    """A document to take into a knowledge base; the ending of its name says what it is."""
    path = f"/api/v1/knowledge-bases/{quote(base, safe='')}/documents"
    return Call("POST", path, content=data, params={"source": source})


def chat_body(message: str, user: str, session: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a message; `options` are fields of the API, of which None are left out."""
    return {"user_id": user, "session_id": session, "message": message, **_given(options)}


def chat(body: Mapping[str, Any], key: str | None) -> Call[Answer]:
    """A message, answered as one document; the key makes it safe to repeat."""
    headers = {"Idempotency-Key": key or str(uuid4())}
    return Call("POST", "/api/v1/chat", Answer.of, json=body, headers=headers)


def recall(
    user: str, query: str, limit: int, as_of: datetime | None, options: Mapping[str, Any]
) -> Call[list[FoundMemory]]:
    """A search of episodes, now or as of a moment; `options` are fields of the API, of which None are left out."""
    body = {"query": query, "top_k": limit, **_moment(as_of), **_given(options)}
    return Call("POST", f"{_of(user)}/episodes/search", lambda found: _items(found, FoundMemory.of), json=body)


def remember(user: str, text: str, kind: MemoryKind) -> Call[WrittenMemory]:
    """A memory to write down."""
    body = {"content": text, "episode_type": kind}
    return Call("POST", f"{_of(user)}/episodes", WrittenMemory.of, json=body, repeatable=False)


def forget(user: str, what: str, keep: str, *, takes_all: bool) -> Call[MemoryChange]:
    """The call that forgets what a text describes."""
    body = {"what": what, "all": takes_all, **({"keep": keep} if keep else {})}
    return Call("POST", f"{_of(user)}/memory/forget", MemoryChange.of, json=body)


def undo(user: str, operation_id: str) -> Call[None]:
    """A change of memory is to be undone."""
    path = f"{_of(user)}/memory-operations/{quote(operation_id, safe='')}/undo"
    return Call("POST", path, lambda _: None)


def approve(turn_id: str, approval_id: str, *, approved: bool) -> Call[None]:
    """The user's answer to the question whether a tool may be called."""
    body = {"approval_id": approval_id, "approved": approved}
    return Call("POST", f"/api/v1/turns/{quote(turn_id, safe='')}/approve", lambda _: None, json=body)


def pin(user: str, memory_id: str, *, pinned: bool) -> Call[None]:
    """A memory is to be pinned or unpinned."""
    path = f"{_of(user)}/episodes/{quote(memory_id, safe='')}/pin"
    return Call("PUT" if pinned else "DELETE", path, lambda _: None)


def profile(user: str, as_of: datetime | None) -> Call[list[Section]]:
    """Core memory, now or as of a moment."""
    return Call("GET", f"{_of(user)}/core-memory", lambda found: _items(found, Section.of), params=_moment(as_of))


def store(user: str, operations: Sequence[Mapping[str, Any]], space: str | None) -> Call[list[Any]]:
    """Operations on the items of a user."""
    body = {"user_id": user, "space": space, "operations": list(operations)}
    writes = any(each["op"] == "put" for each in operations)

    def results(found: Any) -> list[Any]:
        return list(found["results"])

    return Call("POST", "/api/v1/store/batch", results, json=body, repeatable=not writes, outlasts=False)


def export(user: str, space: str | None) -> Call[Any]:
    """Everything that is stored of a user, or in one space."""
    return Call("GET", f"{_of(user)}/export", params={} if space is None else {"space": space})


def import_part(content: Any) -> Call[Any]:
    """A part of an import."""
    return Call("POST", "/api/v1/import", content=content, headers={"Content-Type": LINES})


def content_of(response: httpx.Response) -> Any:
    """The content of an answer of success; None for one without.

    Raises:
        ServiceError: it is not from the service.
    """
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise ServiceError(response.status_code, NOT_OURS, response.text[:200]) from None


def error_of(response: httpx.Response) -> ServiceError:
    """The error of an answer that was read and is none of success."""
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
