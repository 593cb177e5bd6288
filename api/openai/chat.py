"""`POST /v1/chat/completions`: a turn in the form of OpenAI's chat completions."""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.access import RunnerOf, ServicesOf, TurnStarter
from api.end_user import end_user_of
from api.openai.chat_schemas import ChatCompletionRequest
from api.openai.chunks import chunks, completion
from api.openai.errors import documented_errors, response_of_failed
from api.openai.messages import read_messages
from api.openai.sampling import passed_parameters
from api.openai.sessions import ids_of
from api.openai.turn_request import ReadRequest, RequestStarter, StartedTurn, budget_of
from api.openai.utilities import is_utility, utility_turn
from api.request_bodies import JsonRoute
from api.streams import EventStream, TurnEvents, whole_turn

ERRORS = documented_errors(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)

EVENTS_HEADER = "X-Anamnesis-Events"
"""Asks for the service's own events in a stream; clients that do not know them may take them for chunks."""

router = APIRouter(prefix="/v1", tags=["openai"], responses=ERRORS, route_class=JsonRoute)


@router.post(
    "/chat/completions",
    response_class=JSONResponse,
    responses={200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "The answer."}},
)
async def chat_completions(
    body: ChatCompletionRequest,
    connection: Request,
    services: ServicesOf,
    starter: TurnStarter,
    runner: RunnerOf,
) -> Response:
    """Answer the last message of the user, with the memory of that user.

    The stored conversation is authoritative; the history that a client sends along only shows what the client
    intends.
    """
    body.refuse_unsupported()
    passed = passed_parameters(services.settings)
    sampling = body.sampling(passed)
    if by := is_utility(body.messages, connection.headers):
        asked, events = await utility_turn(services, starter, body.model, body.messages, sampling, by)
        return await _answer(body, asked, events, with_own=False)
    caller = starter.caller
    named = (("safety_identifier", body.safety_identifier), ("user", body.user))
    asking = ReadRequest(
        model=body.model,
        request=read_messages(body.messages),
        ids=ids_of(connection.headers, body.metadata),
        speaker=end_user_of(caller, connection.headers, services.settings, *named),
        keeps=body.store is not False,
        headers=body.ignored(passed),
        sampling=sampling,
        budget=budget_of(connection.headers, body.metadata),
    )
    asked = await RequestStarter(services, runner, starter).start(asking)
    stop = None if asked.stored else partial(runner.abandon, asked.tenant_id, asked.turn_id)
    events = runner.follow(asked.tenant_id, asked.turn_id)
    return await _answer(body, asked, events, stop, with_own=EVENTS_HEADER in connection.headers)


async def _answer(
    body: ChatCompletionRequest,
    asked: StartedTurn,
    events: TurnEvents,
    stop: Callable[[], Awaitable[object]] | None = None,
    *,
    with_own: bool,
) -> Response:
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        frames = chunks(asked, events, with_usage=with_usage, with_own=with_own)
        return EventStream(frames, stop, asked.headers)
    last, reasoning = await whole_turn(events)
    if last.status == "error":
        return response_of_failed(last, asked.headers)
    return JSONResponse(completion(asked, last, reasoning), headers=asked.headers)
