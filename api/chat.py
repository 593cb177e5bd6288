"""`POST /api/v1/chat/stream`, `POST /api/v1/chat` and the WebSocket: a message in, its turn's events out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from http import HTTPStatus

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from sse_starlette import EventSourceResponse

from api.access import RunnerOf, StartsTurns, TurnStarter
from api.frames import sse_frames, ws_frame
from api.problems import Problem, documented, invalid_fields, problem_of, problem_response
from api.schemas import ChatAnswer, ChatRequest, SocketRequest
from graph.opening import TurnRequest
from graph.turn_log import TurnLog
from graph.turns import TurnRunner
from services.errors import AnamnesisError
from state.events import TurnEvent

router = APIRouter(prefix="/api/v1/chat", tags=["chat"])

HEARTBEAT_S = 15

_PROBLEMS = documented(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)


@router.post(
    "/stream",
    response_class=EventSourceResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "The turn's events."}, **_PROBLEMS},
)
async def chat_stream(request: ChatRequest, starter: TurnStarter, runner: RunnerOf) -> EventSourceResponse:
    """Send a message and stream its answer.

    Everything that can be refused is refused before the stream begins; then exactly one of the events
    `done` and `error` ends it.
    """
    caller = await starter.caller_for(request.user_id)
    running = await runner.start(TurnRequest(caller.tenant_id, request.as_input()))
    return EventSourceResponse(
        _sse(running.log), ping=HEARTBEAT_S, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    )


@router.post("", response_model=ChatAnswer, responses={**_PROBLEMS, **documented(HTTPStatus.BAD_GATEWAY)})
async def chat(request: ChatRequest, starter: TurnStarter, runner: RunnerOf) -> JSONResponse:
    """Send a message and wait for the whole answer."""
    caller = await starter.caller_for(request.user_id)
    running = await runner.start(TurnRequest(caller.tenant_id, request.as_input()))
    last = await _last_event(running.log)
    if last.status == "done":
        return JSONResponse(last.content)
    code = last.content["code"]
    if code.startswith("llm_"):
        status = HTTPStatus.BAD_GATEWAY
    else:
        status = HTTPStatus.INTERNAL_SERVER_ERROR if code == "internal" else HTTPStatus.SERVICE_UNAVAILABLE
    detail = f"{last.content['message']} Turn {last.content['turn_id']} holds what there is of the answer."
    problem = Problem(title=status.phrase, status=status, detail=detail, code=code)
    return problem_response(problem, {"Retry-After": "1"} if last.content["retryable"] else None)


@router.websocket("/ws")
async def chat_socket(socket: WebSocket, starter: TurnStarter, runner: RunnerOf) -> None:
    """Take requests as JSON frames, send the events of their turns; several turns may run at once.

    A frame that cannot be accepted is answered with an `error` frame and the socket stays open. When
    the socket closes, its turns run on.
    """
    await socket.accept()
    following: set[asyncio.Task[None]] = set()
    try:
        while True:
            frame = await socket.receive()
            if frame["type"] == "websocket.disconnect":
                return
            try:
                request = SocketRequest.model_validate_json(frame.get("text") or frame.get("bytes") or "")
            except ValidationError as error:
                await socket.send_text(_refusal(invalid_fields(list(error.errors())), retryable=False))
                continue
            task = asyncio.create_task(_answer(socket, starter, request, runner))
            following.add(task)
            task.add_done_callback(following.discard)
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _answer(socket: WebSocket, starter: StartsTurns, request: SocketRequest, runner: TurnRunner) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it was closed while we were sending
        try:
            caller = await starter.caller_for(request.user_id)
            running = await runner.start(TurnRequest(caller.tenant_id, request.as_input()))
        except AnamnesisError as error:
            refusal = _refusal(problem_of(error), retryable=error.retryable, request_id=request.request_id)
            await socket.send_text(refusal)
            return
        async with aclosing(running.log.follow()) as batches:
            async for batch in batches:
                for event in batch:
                    await socket.send_text(ws_frame(event, running.turn.turn_id, request.request_id))


def _refusal(problem: Problem, *, retryable: bool, request_id: str | None = None) -> str:
    content = {"code": problem.code, "message": problem.detail, "retryable": retryable, "turn_id": None}
    return ws_frame(TurnEvent(1, "error", content), None, request_id)


async def _sse(log: TurnLog) -> AsyncIterator[bytes]:
    async with aclosing(log.follow()) as batches:
        async for batch in batches:
            yield sse_frames(batch)


async def _last_event(log: TurnLog) -> TurnEvent:
    async with aclosing(log.follow()) as batches:
        async for batch in batches:
            if batch[-1].is_last:
                return batch[-1]
    raise AssertionError("every turn ends with an event")
