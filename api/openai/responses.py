"""`/v1/responses`: turns as responses, returned at once, as a stream, or later from the log of their events."""

import re
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from api.access import ClientChatter, ClientWriter, ServedCaller, StartsTurns, TurnStarter
from api.openai.chat import ERRORS, start_answer, user_of
from api.openai.response_events import ResponseHead, response_of_last, response_of_stored, response_stream
from api.openai.response_schemas import ConversationReference, ResponseRequest
from api.openai.sessions import ClientIds, uuid_in
from api.problems import OPENAI_PATHS, response_of_failed
from api.request_bodies import JsonRoute
from api.streams import EventStream, last_event
from services.bootstrap import Services
from services.conversations.turn import StoredTurn
from services.errors import InvalidInput, NotFound
from services.memory.removal.targets import Target
from state.events import PART

router = APIRouter(prefix="/v1/responses", tags=["openai"], responses=ERRORS, route_class=JsonRoute)

_PART = re.compile(r"(?<=[0-9a-f]{12})_([0-9]{1,3})\Z")
_ITEM = re.compile(
    r"(?:msg|fc)_([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})(?:_([0-9]{1,3})|([0-9a-f]{3})[0-9a-f]{2})?"
)
ResponseId = Annotated[str, Path(description="resp_… of a response.")]


@router.post(
    "",
    response_class=JSONResponse,
    responses={
        200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "The response."}
    },
)
async def create(body: ResponseRequest, starter: TurnStarter) -> Response:
    """Answer the last message of the input, with the memory of its user."""
    body.refuse_unsupported()
    services = starter.services
    said = body.messages(await _referred(starter, body))
    asked = await start_answer(starter, body, said, partial(_in_conversation, starter, body))
    stored = await services.turns.get(asked.tenant_id, asked.turn_id) if asked.stored else None
    conversation_id = stored.conversation_id if stored else None
    background = stored is not None and bool(body.background)
    head = ResponseHead(asked.turn_id, asked.model, conversation_id, background, asked.note, body.echo, asked.part)
    if body.stream:
        return EventStream(response_stream(head, asked.events), asked.abandon, asked.headers)
    if stored is not None and background:
        return JSONResponse(response_of_stored(head, stored), headers=asked.headers)
    last = await last_event(asked.events)
    if last.status == "error" and "answer" not in last.content:
        return response_of_failed(last, asked.headers, path=OPENAI_PATHS)
    return JSONResponse(response_of_last(head, last), headers=asked.headers)


@router.get(
    "/{response_id}",
    response_class=JSONResponse,
    responses={
        200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "The response."}
    },
)
async def retrieve(
    response_id: ResponseId,
    caller: ClientChatter,
    stream: Annotated[bool, Query(description="Its events instead, as they come.")] = False,
    starting_after: Annotated[
        int | None, Query(ge=0, lt=1 << 40, description="With stream: only events with a greater number.")
    ] = None,
) -> Response:
    """Return a response's current state, or its events from any point, from the log of the turn.

    If the events have expired, only the last ones are sent; they hold the whole text.
    """
    turn, part = await _turn(caller, response_id)
    head = await _head(caller, turn, part)
    if not stream:
        return JSONResponse(response_of_stored(head, turn))
    after = -1 if starting_after is None else starting_after
    events = caller.runner.follow(caller.tenant_id, turn.id, PART * part)
    return EventStream(response_stream(head, events, after))


@router.post("/{response_id}/cancel", response_class=JSONResponse)
async def cancel(response_id: ResponseId, caller: ClientChatter) -> Response:
    """Stop a running response and keep what it has so far. One that has ended stays as it is."""
    turn, part = await _turn(caller, response_id)
    head = await _head(caller, turn, part)
    return JSONResponse(response_of_stored(head, await caller.runner.stop(caller.tenant_id, turn.id)))


@router.delete("/{response_id}", response_class=JSONResponse)
async def delete(response_id: ResponseId, caller: ClientWriter) -> Response:
    """Forget a response for good, with the message that it answers and what memory made of both."""
    turn, _ = await _turn(caller, response_id)
    conversation = await caller.services.transcript.conversation(caller.tenant_id, turn.conversation_id)
    await forget_message(caller, conversation.user_id, turn.user_message_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


@router.get("/{response_id}/input_items", response_class=JSONResponse)
async def input_items(response_id: ResponseId, caller: ClientChatter) -> Response:
    """The message that a response answers."""
    turn, _ = await _turn(caller, response_id)
    message = await caller.services.transcript.message(caller.tenant_id, turn.user_message_id)
    item = {
        "id": f"msg_{message.id}",
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_text", "text": message.content}],
    }
    return JSONResponse(
        {"object": "list", "data": [item], "first_id": item["id"], "last_id": item["id"], "has_more": False}
    )


async def forget_message(caller: ServedCaller, user_id: str, message_id: UUID) -> None:
    """Forget a message for good and delete its words; with a message of the user its answer as well."""
    target = Target(message_id=message_id)
    await caller.services.forgetting.forget(
        caller.tenant_id, user_id, target, by=caller.actor, delete_messages=True
    )


async def _in_conversation(
    starter: StartsTurns, body: ResponseRequest, user_id: str | None, ids: ClientIds
) -> tuple[str | None, ClientIds]:
    """Return the user, and the ids with the conversation that the body names. A request that names a conversation
    but no user is taken for that conversation's user, unless its caller is bound to another. Raises `NotFound` if
    there is no such conversation, or it belongs to another user."""
    named = body.conversation.id if isinstance(body.conversation, ConversationReference) else body.conversation
    if named is None and body.previous_response_id is None:
        return user_id, ids
    services, tenant_id, turn_id = starter.services, starter.caller.tenant_id, None
    if named is not None:
        conversation_id = uuid_in("conversation", "conv", named)
    else:
        turn_id, _ = _ids_in("previous_response_id", str(body.previous_response_id))
        turn = await _stored(services, tenant_id, turn_id, user_id)
        conversation_id = turn.conversation_id
    conversation = await services.transcript.conversation(tenant_id, conversation_id, user_id=user_id)
    session = conversation.session_id
    return conversation.user_id, replace(ids, session=session, after_turn=turn_id, passing=False, of_ours=True)


async def _referred(starter: StartsTurns, body: ResponseRequest) -> dict[str, dict[str, Any]]:
    """The items of earlier responses that the input names by their ids. Raises `InvalidInput` if there is no
    such item."""
    found: dict[str, dict[str, Any]] = {}
    user_id = user_of(starter, body)
    for field, item_id in body.references():
        if (named := _ITEM.fullmatch(item_id)) is None:
            raise InvalidInput(field, f"there is no item {item_id[:80]!r}; send it as a whole")
        digits, part, called = named[1], named[2] or "0", named[3]
        turn_id = UUID(digits)
        try:
            turn = await starter.services.turns.get(starter.caller.tenant_id, turn_id, user_id=user_id)
        except NotFound:
            raise InvalidInput(field, f"there is no item {item_id[:80]!r}; send it as a whole") from None
        head = ResponseHead(turn_id, "", part=int(called, 16) if called else int(part))
        found |= {item["id"]: item for item in response_of_stored(head, turn)["output"]}
        if item_id not in found:
            raise InvalidInput(field, f"there is no item {item_id[:80]!r}; send it as a whole")
    return found


async def _turn(caller: ServedCaller, response_id: str) -> tuple[StoredTurn, int]:
    """Return the turn of a response, and the part of the turn that the response shows."""
    turn_id, part = _ids_in("response", response_id, missing=NotFound)
    turn = await _stored(caller.services, caller.tenant_id, turn_id, caller.user_id)
    last = len((turn.context_report or {}).get("rounds", [])) - (turn.status == "paused")
    if part > last:
        raise NotFound(f"There is no response {response_id[:80]!r}.")
    return turn, part


def _ids_in(field: str, response_id: str, missing: type[NotFound] | None = None) -> tuple[UUID, int]:
    """Return the turn and the part that the id of a response names. Raises `NotFound` with `missing` if the id
    names no turn, and `InvalidInput` if it is not an id."""
    found = _PART.search(response_id)
    part = int(found[1]) if found else 0
    return uuid_in(field, "resp", response_id[: found.start()] if found else response_id, missing), part


async def _stored(services: Services, tenant_id: UUID, turn_id: UUID, user_id: str | None) -> StoredTurn:
    missing = f"There is no response resp_{turn_id}; one that was not stored, or was deleted, cannot be found."
    try:
        turn = await services.turns.get(tenant_id, turn_id, user_id=user_id)
    except NotFound:
        raise NotFound(missing) from None
    question = await services.transcript.message(tenant_id, turn.user_message_id)
    if not question.content:  # of a deleted one the row stays, without its words
        raise NotFound(missing)
    return turn


async def _head(caller: ServedCaller, turn: StoredTurn, part: int) -> ResponseHead:
    conversation = await caller.services.transcript.conversation(caller.tenant_id, turn.conversation_id)
    return ResponseHead(turn.id, conversation.expert, turn.conversation_id, echo=turn.echo or {}, part=part)
