"""`POST /api/v1/chat/stream`, `POST /api/v1/chat` and the WebSocket: take a message, return its turn's events."""

import asyncio
import contextlib
from collections.abc import Coroutine
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

import orjson
import structlog
from fastapi import APIRouter, Header, Query, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError

from api.access import Chatter, ServicesOf, StartsTurns, TurnStarter
from api.chat_schemas import ChatAnswer, ChatRequest, IdempotencyKey, OnConflict, OnDisconnect, SocketRequest
from api.problems import Problem, documented, invalid_fields, problem_of, response_of_failed
from api.request_bodies import JsonRoute, parsed
from api.schemas import TicketView
from api.streams import EventStream, disconnected, last_event, sse_events, ws_frame
from services.conversations.speakers import names_of_user, other_speaker
from services.conversations.turn import TurnRequest
from services.errors import AnamnesisError, InvalidInput
from services.identity.authentication import TICKET_S
from services.identity.caller import Caller
from services.identity.tenants import user_id_of
from services.platform.metrics import TURNS_REFUSED
from state.events import TurnEvent

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/api/v1/chat", tags=["chat"], route_class=JsonRoute)

_PROBLEMS = documented(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)

KeyHeader = Annotated[
    IdempotencyKey | None,
    Header(alias="Idempotency-Key", description="The same key in the same conversation is the same turn."),
]
ConflictQuery = Annotated[OnConflict | None, Query(alias="on_conflict", description="Instead of the body's.")]
DisconnectQuery = Annotated[
    OnDisconnect | None, Query(alias="on_disconnect", description="Instead of the body's.")
]


@router.post(
    "/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The turn's events."}, **_PROBLEMS},
)
async def chat_stream(
    request: ChatRequest,
    starter: TurnStarter,
    key: KeyHeader = None,
    on_conflict: ConflictQuery = None,
    on_disconnect: DisconnectQuery = None,
) -> EventStream:
    """Send a message and stream its answer.

    Everything that can be refused is refused before the stream begins; then exactly one of the events
    `done` and `error` ends it.
    """
    runner = starter.runner
    caller, turn_id = await _start(starter, request, key, on_conflict)
    stop = partial(runner.abandon, caller.tenant_id, turn_id)
    cancels = (on_disconnect or request.on_disconnect) == "cancel"
    return EventStream(sse_events(runner.follow(caller.tenant_id, turn_id)), stop if cancels else None)


@router.post("", response_model=ChatAnswer, responses={**_PROBLEMS, **documented(HTTPStatus.BAD_GATEWAY)})
async def chat(
    request: ChatRequest,
    starter: TurnStarter,
    connection: Request,
    key: KeyHeader = None,
    on_conflict: ConflictQuery = None,
    on_disconnect: DisconnectQuery = None,
) -> JSONResponse:
    """Send a message and wait for the whole answer."""
    runner = starter.runner
    caller, turn_id = await _start(starter, request, key, on_conflict)
    answering = asyncio.create_task(last_event(runner.follow(caller.tenant_id, turn_id)))
    waiting: set[asyncio.Task[Any]] = {answering}
    try:
        if (on_disconnect or request.on_disconnect) == "cancel":
            waiting.add(asyncio.create_task(disconnected(connection)))
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                await runner.abandon(caller.tenant_id, turn_id)
        return _answer_of(await answering)
    finally:
        for task in waiting:
            task.cancel()


@router.post("/ticket", response_model=TicketView, responses=documented(HTTPStatus.SERVICE_UNAVAILABLE))
async def ticket(connection: Request, services: ServicesOf, _: Chatter) -> TicketView:
    """Issue a short-lived ticket for a browser to open the WebSocket once: `/api/v1/chat/ws?ticket=…`."""
    issued = await services.tickets.issue(connection.headers.get("authorization", ""))
    return TicketView(ticket=issued, expires_in_s=TICKET_S)


@router.websocket("/ws")
async def chat_socket(
    socket: WebSocket,
    starter: TurnStarter,
    events_of: Annotated[str | None, Query(description="A user whose own events are sent, too.")] = None,
    after: Annotated[
        int | None, Query(ge=0, description="Number of the last of them seen; unset = new ones.")
    ] = None,
) -> None:
    """Take requests as JSON frames and send the events of their turns; several turns may run at once.

    A frame that cannot be accepted is answered with an `error` frame and the socket stays open. When the
    socket closes, its turns continue, except those with `on_disconnect: cancel`.
    """
    user_id = None if events_of is None else await _user_told(starter, events_of)
    await socket.accept()
    following: set[asyncio.Task[None]] = set()

    def follow(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        following.add(task)
        task.add_done_callback(following.discard)
        task.add_done_callback(_log_failure)

    if user_id is not None:
        follow(_tell(socket, starter, user_id, after))
    try:
        while True:
            frame = await socket.receive()
            if frame["type"] == "websocket.disconnect":
                return
            try:
                request = await _read(frame.get("text") or frame.get("bytes") or "")
            except InvalidInput as error:
                await socket.send_text(_refusal(problem_of(error), retryable=False))
                continue
            except ValidationError as error:
                problem = invalid_fields(error.errors(), {"body": SocketRequest.model_json_schema()})
                await socket.send_text(_refusal(problem, retryable=False))
                continue
            follow(_answer(socket, starter, request))
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _read(frame: str | bytes) -> SocketRequest:
    """Return the request in a frame. Raises `InvalidInput` if an object has a key twice, and `ValidationError`
    if the frame is no JSON, or a value is wrong."""
    try:
        found = await parsed(frame)
    except (ValueError, RecursionError):
        return SocketRequest.model_validate_json(frame)  # it says what is wrong
    return SocketRequest.model_validate(found)


def _log_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("a request of a socket failed", exc_info=error)


async def _user_told(starter: StartsTurns, name: str) -> UUID:
    """Return the id of a user of whose events a caller may be told."""
    starter.caller.require("memory:read")
    starter.caller.act_for(name)
    return await user_id_of(starter.services.database, starter.caller.tenant_id, name)


async def _tell(socket: WebSocket, starter: StartsTurns, user_id: UUID, after: int | None) -> None:
    """Send what happens to a user without a request of theirs, until the socket closes."""
    feed, tenant_id = starter.services.event_feed, starter.caller.tenant_id
    begin = await feed.newest(tenant_id, user_id) if after is None else after
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it was closed while we were sending
        async with aclosing(feed.follow(tenant_id, user_id, begin)) as batches:
            async for batch in batches:
                for each in batch:
                    content = {**each.about, "at": each.at}
                    frame = {"id": each.id, "status": each.kind, "content": content, "turn_id": None}
                    await socket.send_text(orjson.dumps(frame).decode())


async def _answer(socket: WebSocket, starter: StartsTurns, request: SocketRequest) -> None:
    """Run one request of a socket; closing the socket cancels it."""
    try:
        caller, turn_id = await _start(starter, request, request.idempotency_key, None)
    except AnamnesisError as error:
        refusal = _refusal(problem_of(error), retryable=error.retryable, request_id=request.request_id)
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it was closed meanwhile
            await socket.send_text(refusal)
        return
    ended, runner = False, starter.runner
    patience_s = starter.services.settings.http_reader_timeout_s
    try:
        async with aclosing(runner.follow(caller.tenant_id, turn_id)) as batches:
            async for batch in batches:
                for event in batch:
                    async with asyncio.timeout(patience_s):
                        await socket.send_text(ws_frame(event, turn_id, request.request_id))
                    ended = event.is_last
    except (WebSocketDisconnect, RuntimeError):
        pass  # it was closed during sending
    except TimeoutError:
        await socket.close(1008, "too slow a reader")
    finally:
        if not ended and request.on_disconnect == "cancel":
            await runner.abandon(caller.tenant_id, turn_id)


async def _start(
    starter: StartsTurns, request: ChatRequest, key: str | None, on_conflict: OnConflict | None
) -> tuple[Caller, UUID]:
    """Start the turn of a message, or find it; return the caller for whom it is followed, and its id."""
    caller = await starter.caller_for(request.user_id)
    asked = request.as_input()
    if request.speaker is not None:
        of_user = await names_of_user(starter.services.users, caller.tenant_id, request.user_id, [request.speaker])
        asked["speaker"] = other_speaker(request.speaker, of_user)
    if request.without:
        exclusions = starter.services.memory.exclusions
        asked["without"] = await exclusions.expanded(caller.tenant_id, request.user_id, request.without)
    turn = TurnRequest(
        caller.tenant_id,
        asked,
        idempotency_key=key,
        on_conflict=on_conflict or request.on_conflict,
        stored=not request.temporary,
        external_id=request.external_id,
    )
    if request.replaces is not None:
        return caller, await starter.runner.start_instead(turn, request.replaces)
    return caller, await starter.runner.start(turn)


def _answer_of(last: TurnEvent) -> JSONResponse:
    if last.status == "done":
        return JSONResponse(last.content)
    message = f"{last.content['message']} Turn {last.content['turn_id']} holds the answer as far as it came."
    return response_of_failed(TurnEvent(last.sequence, "error", {**last.content, "message": message}))


def _refusal(problem: Problem, *, retryable: bool, request_id: str | None = None) -> str:
    TURNS_REFUSED.labels(problem.code).inc()
    content = {"code": problem.code, "message": problem.detail, "retryable": retryable, "turn_id": None}
    return ws_frame(TurnEvent(1, "error", content), None, request_id)
