"""`POST /v1/chat/completions`: a turn in the form of OpenAI's chat completions."""

from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from uuid_utils.compat import uuid7

from api.access import RunnerOf, ServicesOf, StartsTurns, TurnStarter
from api.end_user import end_user_of
from api.openai.chat_schemas import ChatCompletionRequest
from api.openai.chunks import chunks, completion
from api.openai.errors import documented_errors, error_of_turn
from api.openai.messages import ClientMessage, read_messages, text_of
from api.openai.models import expert_of
from api.openai.sampling import passed_parameters
from api.openai.sessions import ids_of
from api.openai.turn_request import NOBODY, ReadRequest, RequestStarter, StartedTurn
from api.openai.utility_requests import is_utility
from api.problems import status_of_failure
from api.streams import EventStream, last_event
from services.bootstrap import Services
from services.llm.chat_models import BACKGROUND_TEMPERATURE
from services.llm.tokens import count_tokens
from services.platform.metrics import UTILITY_REQUESTS
from services.platform.tracing import confidential
from state.conversation import Sampling
from state.events import TurnEvent

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

router = APIRouter(prefix="/v1", tags=["openai"], responses=ERRORS)


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
        return await _utility(body, services, starter, sampling, by)
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
    )
    asked = await RequestStarter(services, runner, starter).start(asking)
    events = runner.follow(asked.tenant_id, asked.turn_id)
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        stop = None if asked.stored else partial(runner.stop, asked.tenant_id, asked.turn_id)
        return EventStream(chunks(asked, events, with_usage=with_usage), stop, asked.headers)
    return _whole(asked, await last_event(events))


def _whole(asked: StartedTurn, last: TurnEvent) -> JSONResponse:
    if last.status == "error":
        retry = {"Retry-After": "1"} if last.content["retryable"] else {}
        status = status_of_failure(last.content["code"])
        return JSONResponse(error_of_turn(last), status, {**asked.headers, **retry})
    return JSONResponse(completion(asked, last), headers=asked.headers)


async def _utility(
    body: ChatCompletionRequest,
    services: Services,
    starter: StartsTurns,
    sampling: Sampling,
    recognised_by: str,
) -> Response:
    """Have the small model answer a request that is not conversation; no user data are read or stored."""
    caller = await starter.caller_for(starter.caller.user_id or NOBODY)
    await expert_of(services, caller.tenant_id, body.model)
    UTILITY_REQUESTS.labels(recognised_by).inc()
    confidential.set(True)  # it is about a conversation that may be temporary
    messages = [_message(each) for each in body.messages if text_of(each)]
    temperature = sampling.pop("temperature", BACKGROUND_TEMPERATURE)
    answer = await services.models.complete(messages, temperature=temperature, sampling=sampling)
    used = sum(count_tokens(message.text) for message in messages)
    content = {
        "answer": answer,
        "sources": [],
        "usage": {"input_tokens": used, "output_tokens": count_tokens(answer), "cached_tokens": 0},
    }
    asked = StartedTurn(caller.tenant_id, uuid7(), body.model, stored=False, session=None)
    last = TurnEvent(2, "done", content)
    if not body.stream:
        return JSONResponse(completion(asked, last))

    async def events() -> Any:
        yield [TurnEvent(1, "token", answer), last]

    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    return EventStream(chunks(asked, events(), with_usage=with_usage))


def _message(message: ClientMessage) -> BaseMessage:
    kinds: dict[str, type[BaseMessage]] = {
        "assistant": AIMessage,
        "system": SystemMessage,
        "developer": SystemMessage,
    }
    return kinds.get(message.role, HumanMessage)(content=text_of(message))
