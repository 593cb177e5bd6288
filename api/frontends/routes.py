"""`/api/v1/ui`: front-end protocols; turns are started as for OpenAI's clients."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from api.access import Chatter, PathId, RunnerOf, StartsTurns, TurnStarter
from api.end_user import end_user_of
from api.frontends.mapping import HEADERS, AgUiMapper, UiMessageMapper, mapped
from api.frontends.schemas import AgUiRequest, UiChatRequest
from api.openai.messages import read_messages
from api.openai.sessions import ClientIds
from api.openai.turn_request import ReadRequest, StartedTurn, budget_of, start_turn
from api.problems import documented
from api.request_bodies import JsonRoute
from api.streams import EventStream, LastSeen
from services.conversations.values import Id
from services.errors import InvalidInput
from services.validation import RULE, is_id

CHAT_PATH = "/api/v1/ui/chat"
AG_UI_PATH = "/api/v1/ui/ag-ui"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "The parts of the answer."}
}

router = APIRouter(
    tags=["front ends"],
    responses=documented(
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.SERVICE_UNAVAILABLE,
    ),
    route_class=JsonRoute,
)


@router.post(CHAT_PATH, response_class=StreamingResponse, responses=_STREAM)
async def ui_chat(body: UiChatRequest, starter: TurnStarter) -> EventStream:
    """Answer the last message of an AI SDK chat; the messages before it show what is new."""
    ids = ClientIds(
        session=_session("id", body.id),
        space=body.space,
        parent="" if body.edits_first else None,
        idempotency_key=starter.headers.get("Idempotency-Key", "").strip() or None,
    )
    started = await _start(starter, body, body.expert, ids, ("user", body.user))
    stream = mapped(started.events, UiMessageMapper(started.turn_id))
    return EventStream(stream, started.abandon, {**HEADERS, **started.headers})


@router.get(
    f"{CHAT_PATH}/{{chat_id}}/stream",
    response_class=StreamingResponse,
    responses={**_STREAM, 204: {"description": "No answer is under way."}},
)
async def ui_chat_stream(
    chat_id: PathId,
    connection: Request,
    caller: Chatter,
    runner: RunnerOf,
    user: Annotated[Id | None, Query(description="Whose chat it is, where nothing else says so.")] = None,
) -> Response:
    """Resume the answer that an AI SDK chat is waiting for, from its beginning; 204 if there is none."""
    person = end_user_of(caller, connection.headers, caller.services.settings, ("user", user))
    if person.user_id is None:
        raise InvalidInput("user", "names nobody; send `user`, or use a key or a token that does")
    running = await caller.services.turns.under_way(caller.tenant_id, person.user_id, chat_id)
    if running is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return EventStream(mapped(runner.follow(caller.tenant_id, running), UiMessageMapper(running)), None, HEADERS)


@router.post(AG_UI_PATH, response_class=StreamingResponse, responses=_STREAM)
async def ag_ui(body: AgUiRequest, starter: TurnStarter, last_seen: LastSeen) -> EventStream:
    """Run AG-UI's agent; the same run sent again, with `Last-Event-ID`, resumes where it broke."""
    user, expert = body.prop("user"), body.prop("expert") or "default"
    ids = ClientIds(session=_session("threadId", body.thread_id), space=body.space, idempotency_key=body.run_id)
    started = await _start(starter, body, expert, ids, ("forwardedProps.user", user))
    mapper = AgUiMapper(started.turn_id, thread_id=body.thread_id, run_id=body.run_id)
    return EventStream(mapped(started.events, mapper, last_seen), started.abandon, started.headers)


async def _start(
    starter: StartsTurns,
    body: UiChatRequest | AgUiRequest,
    expert: str,
    ids: ClientIds,
    named: tuple[str, str | None],
) -> StartedTurn:
    person = end_user_of(starter.caller, starter.headers, starter.services.settings, named)
    said, budget = read_messages(body.said()), budget_of(starter.headers)
    asking = ReadRequest(expert, said, ids, person, keeps=not body.temporary, budget=budget)
    return await start_turn(starter, asking)


def _session(field: str, name: str) -> str:
    if not is_id(name):
        raise InvalidInput(field, RULE)
    return name
