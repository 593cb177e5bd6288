"""`/v1/conversations`: conversations and their messages as items."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field, StringConstraints
from uuid_utils.compat import uuid7

from api.access import ClientReader, ClientWriter, ServedCaller
from api.end_user import end_user_of
from api.long_json import MessageList, pieces_of
from api.openai.chat import ERRORS
from api.openai.chat_schemas import ignored_header
from api.openai.messages import read_all, without_names_of
from api.openai.models import expert_of
from api.openai.reconciliation import import_lines, lines_of
from api.openai.response_schemas import messages_of_items
from api.openai.responses import forget_message
from api.openai.sessions import ids_of, uuid_in
from api.request_bodies import JsonRoute
from services.conversations.known_conversations import UNNAMED
from services.conversations.speakers import names_of_user
from services.conversations.transcript import Conversation, Message
from services.conversations.values import message_digest
from services.errors import InvalidInput, NotFound
from state.client_tools import BETWEEN_PARTS
from state.turn import EarlierMessage


def item_of(message: Message) -> dict[str, Any]:
    """Return a message as an item."""
    if message.role == "user":
        content: list[dict[str, Any]] = [{"type": "input_text", "text": message.content}]
        content += [{"type": "input_image", "image_url": part["image_url"]["url"]} for part in message.parts]
    else:
        content = [{"type": "output_text", "text": message.content, "annotations": [], "logprobs": []}]
    return {
        "id": f"msg_{message.id}",
        "type": "message",
        "role": message.role,
        "status": "completed" if message.completed else "incomplete",
        "content": content,
    }


def item_list(messages: Sequence[Message]) -> dict[str, Any]:
    """Return a whole list of messages."""
    shown = [message for message in messages if message.content]  # of a deleted one the row stays
    return {"object": "list", "data": list(map(item_of, shown)), **_end(shown, has_more=False)}


async def item_page(
    first: Sequence[Message], others: AsyncGenerator[Sequence[Message]], limit: int
) -> AsyncGenerator[bytes]:
    """Yield the JSON of a list of at most `limit` messages, from its first part and an iterator over the
    others. If the database fails meanwhile, the list ends early, and says that there are more."""
    listed = MessageList(first, others, limit)
    yield b'{"object":"list","data":['
    async for piece in listed.pieces(_pieces):
        yield piece
    has_more = listed.received > limit or not listed.complete
    yield b"]," + orjson.dumps(_end(listed.shown, has_more=has_more))[1:]


async def _pieces(message: Message) -> AsyncGenerator[bytes]:
    if message.content:
        async for piece in pieces_of(item_of(message), size=_size(message)):
            yield piece


def _end(shown: Sequence[Message], *, has_more: bool) -> dict[str, Any]:
    ids = [f"msg_{message.id}" for message in shown]
    return {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None, "has_more": has_more}


def _size(message: Message) -> int:
    return len(message.content) + sum(len(part.get("image_url", {}).get("url", "")) for part in message.parts)


router = APIRouter(prefix="/v1/conversations", tags=["openai"], responses=ERRORS, route_class=JsonRoute)

MOST_ITEMS = 20
ConversationId = Annotated[str, Path(description="conv_… of a conversation.")]


_OURS = frozenset({"user", "model", "space"})
"""Keys of the metadata that say whose conversation it is."""
Metadata = Annotated[
    dict[
        Annotated[str, StringConstraints(min_length=1, max_length=64)],
        Annotated[str, StringConstraints(max_length=512)],
    ],
    Field(max_length=16),
]


class NewConversation(BaseModel):
    """A conversation that is to begin."""

    items: list[dict[str, Any]] | None = Field(None, max_length=MOST_ITEMS)
    metadata: Metadata | None = Field(
        None, description="`user` names the user, `model` the expert, `space` the space; the rest is kept."
    )


class ChangedConversation(BaseModel):
    """Metadata to be noted on a conversation."""

    metadata: Metadata


class NewItems(BaseModel):
    """Messages that are to be added."""

    items: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_ITEMS)


@router.post("", response_class=JSONResponse)
async def create(body: NewConversation, connection: Request, caller: ClientWriter) -> Response:
    """Begin a conversation, empty or with messages from elsewhere.

    If the request names no user, the conversation gets a user of its own, whose memory no other conversation has.
    """
    metadata = body.metadata or {}
    named = metadata.get("user")
    user_id = end_user_of(caller, connection.headers, caller.services.settings, ("metadata.user", named))
    expert = await expert_of(caller.services, caller.tenant_id, metadata.get("model") or "default")
    session = f"{UNNAMED}{uuid7().hex}"
    user = user_id or f"conversation-{session}"
    space = ids_of(connection.headers, metadata).space
    begun = {
        "kind": "session",
        "user_id": user,
        "session_id": session,
        "expert": expert.name,
        "space": space,
        "created_at": datetime.now(UTC).isoformat(),
    }
    said = await _said(caller, user, body.items or [])
    lines = [begun, *lines_of(user, session, expert.name, said, space=space)]
    await import_lines(caller.services, caller.tenant_id, lines, "items")
    (found,) = await caller.services.transcript.conversations(
        caller.tenant_id, user_id=user, session_id=session, limit=1
    )
    if noted := {name: text for name, text in metadata.items() if name not in _OURS}:
        await caller.services.client_metadata.replace(caller.tenant_id, found.id, noted)
    return JSONResponse(await _view(caller, found), headers=ignored_header(_not_kept(body.items or [])))


@router.get("/{conversation_id}", response_class=JSONResponse)
async def conversation(conversation_id: ConversationId, caller: ClientReader) -> Response:
    """One conversation."""
    return JSONResponse(await _view(caller, await _find(caller, conversation_id)))


@router.post("/{conversation_id}", response_class=JSONResponse)
async def update(conversation_id: ConversationId, body: ChangedConversation, caller: ClientWriter) -> Response:
    """Replace the metadata of a conversation; its user, model and space stay as they are."""
    found = await _find(caller, conversation_id)
    own = _own_metadata(found)
    for name in _OURS & body.metadata.keys():
        if body.metadata[name] != own.get(name):
            raise InvalidInput(f"metadata.{name}", f"cannot be changed; it is {own.get(name)!r}")
    noted = {name: text for name, text in body.metadata.items() if name not in _OURS}
    await caller.services.client_metadata.replace(caller.tenant_id, found.id, noted)
    return JSONResponse(await _view(caller, found))


@router.delete("/{conversation_id}", response_class=JSONResponse)
async def delete(conversation_id: ConversationId, caller: ClientWriter) -> Response:
    """Remove a conversation with everything that was made of it."""
    found = await _find(caller, conversation_id)
    await caller.services.erasure.conversation(caller.tenant_id, found.id, user=caller.user_id)
    return JSONResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


@router.get("/{conversation_id}/items", response_class=JSONResponse)
async def items(
    conversation_id: ConversationId,
    caller: ClientReader,
    after: Annotated[str | None, Query(description="msg_… of the last item seen.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """The messages of a conversation, the newest first unless `order` says otherwise."""
    found = await _find(caller, conversation_id)
    place = None
    if after is not None:
        seen = await caller.services.transcript.message(caller.tenant_id, uuid_in("after", "msg", after))
        place = seen.created_at, seen.id
    parts = caller.services.transcript.page_in_parts(
        caller.tenant_id,
        found.id,
        user_id=caller.user_id,
        after=place,
        limit=limit + 1,
        newest_first=order == "desc",
    )
    first: Sequence[Message] = await anext(parts, [])  # what can be refused is refused before the answer begins
    return StreamingResponse(item_page(first, parts, limit), media_type="application/json")


@router.post("/{conversation_id}/items", response_class=JSONResponse)
async def add_items(conversation_id: ConversationId, body: NewItems, caller: ClientWriter) -> Response:
    """Add messages from elsewhere at the end of a conversation. A message that the conversation's last turn has
    just stored is not added again."""
    found = await _find(caller, conversation_id)
    said = await _said(caller, found.user_id, body.items)
    if new := said[await _stored_before(caller, found, said) :]:
        lines = lines_of(found.user_id, found.session_id, found.expert, new)
        await import_lines(caller.services, caller.tenant_id, lines, "items")
    listed = item_list(await caller.services.transcript.newest(caller.tenant_id, found.id, len(said)))
    return JSONResponse(listed, headers=ignored_header(_not_kept(body.items)))


@router.get("/{conversation_id}/items/{item_id}", response_class=JSONResponse)
async def item(conversation_id: ConversationId, item_id: str, caller: ClientReader) -> Response:
    """One message of a conversation."""
    found = await _find(caller, conversation_id)
    return JSONResponse(item_of(await _message(caller, found, item_id)))


@router.delete("/{conversation_id}/items/{item_id}", response_class=JSONResponse)
async def delete_item(conversation_id: ConversationId, item_id: str, caller: ClientWriter) -> Response:
    """Forget a message for good, with what memory made of it; with a message of the user its answer as well."""
    found = await _find(caller, conversation_id)
    message = await _message(caller, found, item_id)
    await forget_message(caller, found.user_id, message.id)
    return JSONResponse(await _view(caller, found))


async def _stored_before(caller: ServedCaller, found: Conversation, said: Sequence[EarlierMessage]) -> int:
    """Return how many of the first messages the conversation's last turn has stored already. Clients that keep a
    session themselves post again what the service stored when it answered."""
    newest = await caller.services.transcript.newest(caller.tenant_id, found.id, len(said))
    try:
        await caller.services.turns.get(caller.tenant_id, newest[-1].turn_id)
    except (IndexError, NotFound):  # an imported message may be added again
        return 0

    def is_stored(count: int) -> bool:
        return all(map(_is_same, newest[-count:], said[:count]))

    return next(filter(is_stored, range(len(newest), 0, -1)), 0)


def _is_same(stored: Message, given: EarlierMessage) -> bool:
    """Return whether a posted message equals a stored one. Of an answer with calls only the text after the calls
    is compared."""
    if stored.role == given["role"] == "assistant" and stored.content.endswith(
        f"{BETWEEN_PARTS}{given['content']}"
    ):
        return True
    return message_digest(stored.role, stored.content) == message_digest(given["role"], given["content"])


async def _message(caller: ServedCaller, found: Conversation, item_id: str) -> Message:
    message_id = uuid_in("item", "msg", item_id, missing=NotFound)
    message = await caller.services.transcript.message(caller.tenant_id, message_id, conversation_id=found.id)
    if not message.content:
        raise NotFound(f"The item {item_id} was deleted.")
    return message


async def _find(caller: ServedCaller, conversation_id: str) -> Conversation:
    found: UUID = uuid_in("conversation", "conv", conversation_id, missing=NotFound)
    return await caller.services.transcript.conversation(caller.tenant_id, found, user_id=caller.user_id)


async def _view(caller: ServedCaller, conversation: Conversation) -> dict[str, Any]:
    noted = await caller.services.client_metadata.of(caller.tenant_id, conversation.id)
    return {
        "id": f"conv_{conversation.id}",
        "object": "conversation",
        "created_at": int(conversation.created_at.timestamp()),
        "metadata": {**noted, **_own_metadata(conversation)},
    }


def _own_metadata(conversation: Conversation) -> dict[str, str]:
    space = {"space": conversation.space} if conversation.space else {}
    return {"user": conversation.user_id, "model": conversation.expert, **space}


def _not_kept(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the types of items that are no messages; calls and thoughts of turns elsewhere are not kept."""
    return sorted({str(each["type"]) for each in items if each.get("type", "message") != "message"})


async def _said(caller: ServedCaller, user_id: str, items: list[dict[str, Any]]) -> list[EarlierMessage]:
    """Convert messages from elsewhere. Only messages of other participants get the name of their speaker, the
    user's get none."""
    said = read_all(messages_of_items(items, "items"), "items")
    given = [each.get("speaker") for each in said]
    return without_names_of(await names_of_user(caller.services.users, caller.tenant_id, user_id, given), said)
