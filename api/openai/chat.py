"""`POST /v1/chat/completions`: a turn in the form of OpenAI's chat completions."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

import orjson
from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from api.access import StartsTurns, TurnStarter
from api.end_user import end_user_of
from api.openai.chat_schemas import (
    ChatCompletionRequest,
    ModelRequest,
    parameters_left_out,
    passed_parameters,
    with_left_out,
)
from api.openai.client_message import ClientMessage, check_lengths, holds_files
from api.openai.messages import read_messages
from api.openai.models import documented_errors
from api.openai.sessions import FindUser, ids_of
from api.openai.turn_request import ReadRequest, StartedTurn, budget_of, start_turn, usage_of
from api.openai.utilities import is_utility, utility_turn
from api.problems import OPENAI_PATHS, openai_error, problem_of_failed, response_of_failed
from api.request_bodies import JsonRoute
from api.streams import EventStream, whole_turn
from services.errors import InvalidInput
from state.client_tools import ClientCall
from state.events import CALL, TurnEvent

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
async def chat_completions(body: ChatCompletionRequest, starter: TurnStarter) -> Response:
    """Answer the last message of the user, with the memory of that user.

    The stored conversation is authoritative; the history that a client sends along only shows what the client
    intends.
    """
    body.refuse_unsupported()
    asked = await start_answer(starter, body, body.messages)
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        frames = chunks(asked, with_usage=with_usage, with_own=EVENTS_HEADER in starter.headers)
        return EventStream(frames, asked.abandon, asked.headers)
    last, reasoning = await whole_turn(asked.events)
    if last.status == "error":
        return response_of_failed(last, asked.headers, path=OPENAI_PATHS)
    return JSONResponse(completion(asked, last, reasoning), headers=with_left_out(asked.headers, last.content))


def user_of(starter: StartsTurns, body: ModelRequest) -> str | None:
    """Return the user of a request for an answer, as `end_user_of` finds it."""
    named = (("safety_identifier", body.safety_identifier), ("user", body.user))
    return end_user_of(starter.caller, starter.headers, starter.services.settings, *named)


async def start_answer(
    starter: StartsTurns, body: ModelRequest, messages: Sequence[ClientMessage], find: FindUser | None = None
) -> StartedTurn:
    """Start the turn that answers a request. A request that is not conversation, such as one for a title, goes to
    the small model.

    Args:
        starter: Caller who starts the turn.
        body: Body of the request.
        messages: Messages in it.
        find: Finds the user and the conversation that the body names.

    Raises:
        InvalidInput: The request asks for something that cannot be done; the error names the field.
        AnamnesisError: As `start_turn`.
    """
    headers, passed = starter.headers, passed_parameters(starter.services.settings)
    sampling = body.sampling(passed)
    check_lengths(messages, body.holds_messages)
    tools, ignored = body.client_tools, body.ignored(passed)
    if tools is not None and not starter.services.models.takes_tools():
        if "choice" in tools:
            raise InvalidInput("tool_choice", "no tool can be called: the model that is configured takes none")
        tools, ignored = None, sorted([*ignored, "tools"])
    if tools is None and (by := is_utility(messages, headers)):
        return await utility_turn(starter, body.model, messages, sampling, by)
    user_id = user_of(starter, body)
    ids = ids_of(headers, body.metadata)
    if find is not None:
        user_id, ids = await find(user_id, ids)
    request = read_messages(messages, body.holds_messages)
    if holds_files(messages):
        ignored = [*ignored, "files"]
    asking = ReadRequest(
        model=body.model,
        request=request,
        ids=ids,
        user_id=user_id,
        keeps=body.store is not False,
        ignored=ignored,
        tools=tools,
        where=body.holds_messages,
        sampling=sampling,
        budget=budget_of(headers, body.metadata),
        echo=body.kept_echo,
    )
    return await start_turn(starter, asking)


_DONE = b"data: [DONE]\n\n"
_FIELDS = {"token": b"content", "reasoning": b"reasoning_content"}
"""Field of a chunk's delta for each kind of event."""


def completion(asked: StartedTurn, last: TurnEvent, reasoning: str = "") -> dict[str, Any]:
    """Return a whole answer, made from the event `done`; with the model's reasoning if the client shows it."""
    content = part_of(last.content)
    message: dict[str, Any] = {"role": "assistant", "content": content["answer"], "refusal": None}
    if "calls" in content:
        message |= {"content": content["answer"] or None, "tool_calls": list(map(_call, content["calls"]))}
    if reasoning:
        message["reasoning_content"] = reasoning
    if annotations := _annotations(content):
        message["annotations"] = annotations
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": content.get("finish", "stop")}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": usage_view(content), **_note(asked)}


async def chunks(asked: StartedTurn, *, with_usage: bool, with_own: bool = False) -> AsyncGenerator[bytes, None]:
    """Yield the turn's events as chunks. Events of tools that the service runs itself are included only with
    `with_own`."""
    head = orjson.dumps(_head(asked, "chat.completion.chunk"))[:-1]
    usage = b',"usage":null' if with_usage else b""
    before = b"data: " + head + b',"choices":[{"index":0,"delta":{"'
    after = b'},"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"

    def frame(event: TurnEvent) -> bytes:
        if field := _FIELDS.get(event.status):
            return before + field + b'":' + orjson.dumps(event.content) + after
        return _own(event) if with_own else b""

    first: dict[str, Any] = {"role": "assistant", "content": ""}
    yield _chunk(head, first, None, usage, orjson.dumps(_note(asked))[1:-1])
    told = False
    begun: set[int] = set()
    async with aclosing(asked.events) as events:
        async for batch in events:
            frames = [
                _chunk(head, {"tool_calls": [_call_piece(event.content, begun)]}, None, usage)
                if event.status == CALL
                else frame(event)
                for event in batch
            ]
            told = told or any(event.status == "token" for event in batch)
            if batch[-1].is_last:
                last = batch[-1]
                if not told and last.status != "error" and (answer := part_of(last.content)["answer"]):
                    frames.append(frame(TurnEvent(last.sequence, "token", answer)))  # its pieces were dropped
                frames += _end(head, batch[-1], usage, begun, with_usage=with_usage)
            if shown := b"".join(frames):
                yield shown


def _own(event: TurnEvent) -> bytes:
    """Return one of the service's own events under its own name; the last event goes without the answer."""
    content = event.content
    if event.is_last:
        content = {name: value for name, value in content.items() if name != "answer"}
    return b"event: anamnesis.%s\ndata: %s\n\n" % (event.status.encode(), orjson.dumps(content))


def _call_piece(piece: dict[str, Any], begun: set[int]) -> dict[str, Any]:
    """A piece of a call; the first one names it."""
    place, arguments = piece["place"], piece["arguments"]
    if place in begun:
        return {"index": place, "function": {"arguments": arguments}}
    begun.add(place)
    function = {"name": piece["name"], "arguments": arguments}
    return {"index": place, "id": piece["id"], "type": "function", "function": function}


def _end(head: bytes, last: TurnEvent, usage: bytes, begun: set[int], *, with_usage: bool) -> list[bytes]:
    if last.status == "error":
        return [b"data: " + orjson.dumps(openai_error(problem_of_failed(last))) + b"\n\n", _DONE]
    frames = []
    for place, call in enumerate(last.content.get("calls", ())):
        if place in begun:
            continue
        frames.append(_chunk(head, {"tool_calls": [{"index": place, **_call(call)}]}, None, usage))
    if annotations := _annotations(part_of(last.content)):
        frames.append(_chunk(head, {"annotations": annotations}, None, usage))
    left_out = parameters_left_out(last.content)
    told = b'"anamnesis":' + orjson.dumps({"ignored": left_out}) if left_out else b""
    frames.append(_chunk(head, {}, last.content.get("finish", "stop"), usage, told))
    if with_usage:
        shown = orjson.dumps(usage_view(last.content))
        frames.append(b"data: " + head + b',"choices":[],"usage":' + shown + b"}\n\n")
    return [*frames, _DONE]


def part_of(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a part's last event with the text of this part alone."""
    begins_at = content.get("begins_at")
    return {**content, "answer": content["answer"][begins_at:]} if begins_at else content


def _call(call: ClientCall) -> dict[str, Any]:
    arguments = orjson.dumps(call["arguments"]).decode()
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def usage_view(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens in the form in which chat completions report them."""
    usage = usage_of(content)
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["cached_tokens"]},
    }


def created_at(turn_id: UUID) -> int:
    """Return when a turn was opened, in seconds since 1970, from its id: the same for every reader."""
    return (turn_id.int >> 80) // 1000


def _head(asked: StartedTurn, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.turn_id}{f'-{asked.part}' if asked.part else ''}",
        "object": kind,
        "created": created_at(asked.turn_id),
        "model": asked.model,
    }


def _chunk(head: bytes, delta: dict[str, Any], finish: str | None, usage: bytes, more: bytes = b"") -> bytes:
    choice = orjson.dumps([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])
    return b"data: " + head + b',"choices":' + choice + usage + (b"," + more if more else b"") + b"}\n\n"


def _note(asked: StartedTurn) -> dict[str, Any]:
    return {"anamnesis": asked.note} if asked.note else {}


def _annotations(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    cited = citations_of(content["sources"], content["answer"])
    return [{"type": "url_citation", "url_citation": each} for each in cited]


def citations_of(sources: Sequence[Mapping[str, Any]], answer: str) -> list[dict[str, Any]]:
    """One citation for each document whose passages the answer's prompt showed, over the whole answer.

    A document that was ingested under an http(s) address is cited with it; others have an address of the scheme
    `anamnesis`, which names the knowledge base and the document.
    """
    cited: dict[str, dict[str, Any]] = {}
    for source in sources:
        document = str(source["document"])
        is_web = document.startswith(("http://", "https://"))
        url = document if is_web else f"anamnesis://knowledge/{quote(source['kb_prefix'])}/{quote(document)}"
        title = str(source.get("heading") or document)
        cited.setdefault(url, {"url": url, "title": title, "start_index": 0, "end_index": len(answer)})
    return list(cited.values())
