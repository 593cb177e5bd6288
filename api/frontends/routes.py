"""`/api/v1/ui`: front-end protocols; turns are started as for OpenAI's clients."""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from api.access import Chatter, PathId, RunnerOf, ServicesOf, TurnStarter
from api.end_user import end_user_of
from api.frontends.mapping import HEADERS, AgUiMapper, UiMessageMapper, mapped
from api.frontends.schemas import AgUiRequest, UiChatRequest
from api.openai.messages import read_messages
from api.openai.sessions import ClientIds
from api.openai.turn_request import ReadRequest, RequestStarter, StartedTurn, budget_of
from api.problems import documented
from api.request_bodies import JsonRoute
from api.streams import EventStream, LastSeen
from graph.turns.runner import TurnRunner
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
async def ui_chat(
    body: UiChatRequest, connection: Request, services: ServicesOf, starter: TurnStarter, runner: RunnerOf
) -> EventStream:
    """Answer the last message of an AI SDK chat; the messages before it show what is new."""
    ids = ClientIds(
        session=_session("id", body.id),
        space=body.space,
        parent="" if body.edits_first else None,
        idempotency_key=connection.headers.get("Idempotency-Key", "").strip() or None,
    )
    person = end_user_of(starter.caller, connection.headers, services.settings, ("user", body.user))
    request = ReadRequest(
        body.expert,
        read_messages(body.said()),
        ids,
        person,
        keeps=not body.temporary,
        budget=budget_of(connection.headers),
    )
    started = await RequestStarter(services, runner, starter).start(request)
    events = runner.follow(started.tenant_id, started.turn_id)
    stream = mapped(events, UiMessageMapper(started.turn_id))
    return EventStream(stream, _stop_of(runner, started), {**HEADERS, **started.headers})


@router.get(
    f"{CHAT_PATH}/{{chat_id}}/stream",
    response_class=StreamingResponse,
    responses={**_STREAM, 204: {"description": "No answer is under way."}},
)
async def ui_chat_stream(
    chat_id: PathId,
    connection: Request,
    services: ServicesOf,
    caller: Chatter,
    runner: RunnerOf,
    user: Annotated[Id | None, Query(description="Whose chat it is, where nothing else says so.")] = None,
) -> Response:
    """Resume the answer that an AI SDK chat is waiting for, from its beginning; 204 if there is none."""
    person = end_user_of(caller, connection.headers, services.settings, ("user", user))
    if person.user_id is None:
        raise InvalidInput("user", "names nobody; send `user`, or use a key or a token that does")
    running = await services.turns.under_way(caller.tenant_id, person.user_id, chat_id)
    if running is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    return EventStream(mapped(runner.follow(caller.tenant_id, running), UiMessageMapper(running)), None, HEADERS)


@router.post(AG_UI_PATH, response_class=StreamingResponse, responses=_STREAM)
async def ag_ui(
    body: AgUiRequest,
    connection: Request,
    services: ServicesOf,
    starter: TurnStarter,
    runner: RunnerOf,
    last_seen: LastSeen,
) -> EventStream:
    """Run AG-UI's agent; the same run sent again, with `Last-Event-ID`, resumes where it broke."""
    named = ("forwardedProps.user", body.prop("user"))
    expert = body.prop("expert") or "default"
    ids = ClientIds(session=_session("threadId", body.thread_id), space=body.space, idempotency_key=body.run_id)
    person = end_user_of(starter.caller, connection.headers, services.settings, named)
    request = ReadRequest(
        expert,
        read_messages(body.said()),
        ids,
        person,
        keeps=not body.temporary,
        budget=budget_of(connection.headers),
    )
    started = await RequestStarter(services, runner, starter).start(request)
    mapper = AgUiMapper(started.turn_id, thread_id=body.thread_id, run_id=body.run_id)
    events = runner.follow(started.tenant_id, started.turn_id)
    return EventStream(mapped(events, mapper, last_seen), _stop_of(runner, started), started.headers)


def _stop_of(runner: TurnRunner, started: StartedTurn) -> Callable[[], Awaitable[object]] | None:
    """Return what ends a temporary turn when its reader disconnects."""
    return None if started.stored else partial(runner.abandon, started.tenant_id, started.turn_id)


def _session(field: str, name: str) -> str:
    if not is_id(name):
        raise InvalidInput(field, RULE)
    return name
