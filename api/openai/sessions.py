"""The conversation that a request belongs to, found by the ids that clients send."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote
from uuid import UUID

from api.end_user import header_text
from services.conversations.values import space_name
from services.errors import InvalidInput, NotFound
from services.validation import RULE, composed, is_id

SESSION_HEADER = "X-Session-Id"
TURN_HEADER = "X-Turn-Id"
_CONVERSATION_HEADERS = (
    SESSION_HEADER,
    "X-OpenWebUI-Chat-Id",
    "X-Conversation-Id",
    "X-Topic-Id",
    "X-LibreChat-Conversation-Id",
)
_MESSAGE_HEADER = "X-OpenWebUI-Message-Id"
_USER_MESSAGE_HEADER = "X-OpenWebUI-User-Message-Id"
_PARENT_HEADER = "X-OpenWebUI-User-Message-Parent-Id"
_KEY_HEADER = "Idempotency-Key"
_SPACE_HEADER = "X-Anamnesis-Space"
"""Header with the name of a space; characters outside of ASCII are percent-encoded UTF-8."""
_PASSING = ("temporary:", "local:", "channel:")
"""Prefixes of chat ids that a client does not store, or that many users share."""
_SHARED = "channel:"
"""Beginning of chat ids that many users share."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class ClientIds:
    """A client's ids for the conversation and its messages; None = not given."""

    session: str | None = None
    user_message: str | None = None
    parent: str | None = None
    """The answer that the message follows; empty = the conversation begins with it."""
    answer: str | None = None
    idempotency_key: str | None = None
    passing: bool = False
    """Whether the conversation is temporary."""
    shared: bool = False
    """Whether the chat is shared with others, so that memory is not read."""
    space: str | None = None
    """Name of the space that a new conversation belongs to."""
    after_turn: UUID | None = None
    """The turn that the message follows, where the client names it."""

    of_ours: bool = False
    """Whether the client names the conversation by the service's own id, so that no other conversation will do."""


FindUser = Callable[[str | None, ClientIds], Awaitable[tuple[str | None, ClientIds]]]
"""Finds the user and the conversation that a body names."""


def ids_of(headers: Mapping[str, str], metadata: Mapping[str, Any] | None = None) -> ClientIds:
    """Read the ids of a request. Raises `InvalidInput` if one of them is not valid for a conversation, for
    example a template that was not filled in."""
    found = [(name, header_text(headers, name)) for name in _CONVERSATION_HEADERS]
    found.append(("metadata.session_id", _text_in(metadata, "session_id").strip()))
    name, session = next(((name, value) for name, value in found if value), ("", ""))
    passing = session.startswith(_PASSING)
    if session and not passing:
        _check(name, session)
    user_message = _id(headers, _USER_MESSAGE_HEADER)
    answer = _id(headers, _MESSAGE_HEADER)
    return ClientIds(
        session=composed(session) if session and not passing else None,
        user_message=user_message,
        parent=_parent(headers) if user_message else None,
        answer=answer,
        idempotency_key=headers.get(_KEY_HEADER, "").strip() or answer,
        passing=passing,
        shared=session.startswith(_SHARED),
        space=in_header_or_metadata(headers, _SPACE_HEADER, metadata, "space", space_name),
    )


def in_header_or_metadata(
    headers: Mapping[str, str],
    header: str,
    metadata: Mapping[str, Any] | None,
    key: str,
    read: Callable[[str], Read],
) -> Read | None:
    """Return the value of a header, or else of a key of the metadata; None if neither is given. Raises
    `InvalidInput` if the value cannot be read."""
    in_metadata = _text_in(metadata, key)
    for name, given in ((header, unquote(headers.get(header, ""))), (f"metadata.{key}", in_metadata)):
        if given.strip():
            try:
                return read(given)
            except ValueError as error:
                raise InvalidInput(name, str(error)) from None
    return None


def _text_in(metadata: Mapping[str, Any] | None, key: str) -> str:
    given = (metadata or {}).get(key)
    if given is not None and not isinstance(given, str):
        raise InvalidInput(f"metadata.{key}", "must be a text")
    return given or ""


def _parent(headers: Mapping[str, str]) -> str | None:
    value = headers.get(_PARENT_HEADER)
    return None if value is None else _id(headers, _PARENT_HEADER) or ""


def _id(headers: Mapping[str, str], name: str) -> str | None:
    value = header_text(headers, name)
    if not value:
        return None
    _check(name, value)
    return composed(value)


def _check(name: str, value: str) -> None:
    if not is_id(value):
        raise InvalidInput(name, RULE)


def uuid_in(field: str, prefix: str, text: str, missing: type[NotFound] | None = None) -> UUID:
    """Return the service's id within an id such as `resp_…`. Raises `NotFound` with `missing` if it is not one of
    the service's, and `InvalidInput` if it is not an id."""
    try:
        kind, _, digits = text.partition("_")
        if kind != prefix:
            raise ValueError(kind)
        return UUID(digits)
    except ValueError:
        if missing is not None:
            raise missing(f"There is no {field} {text[:80]!r}.") from None
        raise InvalidInput(field, f"is no id of the form {prefix}_…") from None
