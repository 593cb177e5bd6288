"""`/api/v1/ui`: front-end protocols; turns are started as for OpenAI's clients."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.access import Chatter, PathId, StartsTurns, TurnStarter
from api.end_user import end_user_of
from api.frontends.mapping import HEADERS, AgUiMapper, UiMessageMapper, mapped
from api.frontends.ui_message import Camel, UiMessage
from api.openai.chat_schemas import names_in_header
from api.openai.client_message import ClientMessage, holds_files
from api.openai.client_tools import client_tools
from api.openai.messages import read_messages
from api.openai.sessions import ClientIds
from api.openai.turn_request import ReadRequest, StartedTurn, budget_of, start_turn
from api.problems import documented
from api.request_bodies import JsonRoute
from api.streams import EventStream, LastSeen
from services.conversations.values import Id, SpaceName
from services.errors import InvalidInput
from services.validation import RULE, composed, is_id
from state.client_tools import ClientTools
from state.events import PART

_MOST_MESSAGES = 10_000


class UiChatRequest(Camel):
    """Request of the AI SDK's chat; `user` and `expert` are added in its `body`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "chat-1",
                    "user": "u-1",
                    "messages": [{"id": "m-1", "role": "user", "parts": [{"type": "text", "text": "Hello!"}]}],
                }
            ]
        }
    )

    id: str = Field(min_length=1, max_length=128, description="The chat: the name of the conversation.")
    messages: list[UiMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = Field(None, max_length=256, description="The message that was edited, or the answer.")
    user: str | None = Field(None, description="For whom the request is.")
    expert: str = Field("default", description="Name of an expert, or an alias of one.")

    space: SpaceName | None = Field(None, description="The space of a new conversation.")
    temporary: bool = Field(False, description="Store nothing of it.")
    tools: dict[str, dict[str, Any]] | list[dict[str, Any]] | None = Field(
        None, description="Tools that the client runs: a list, or by their names, with description and parameters."
    )

    @property
    def edits_first(self) -> bool:
        """Return whether the message replaces the first one of the conversation."""
        return self.trigger == "submit-message" and self.message_id is not None and len(self.messages) == 1

    def said(self) -> list[ClientMessage]:
        """Return the messages in the form of `/v1`."""
        return [message for each in self.messages for message in each.as_client_messages()]

    def unread(self) -> list[str]:
        """Return the names of what has no effect: unknown fields, and parts with data of the page."""
        kinds = {str(part.get("type")) for each in self.messages for part in each.parts if each.role == "user"}
        return sorted([*(self.model_extra or ()), *(kind for kind in kinds if kind.startswith("data-"))])


class AgUiMessage(Camel):
    """A message of AG-UI; those of activities and of reasoning are not read."""

    id: str | None = Field(None, max_length=256)
    role: str = Field(max_length=64)
    content: str | list[dict[str, Any]] | dict[str, Any] | None = None
    name: str | None = Field(None, description="The name of the participant who says it, if it is not the user.")
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    error: str | None = None


class ForwardedProps(BaseModel):
    """Properties that a front end adds to a run; others are named to the caller."""

    model_config = ConfigDict(strict=True, extra="allow")

    user: str | None = Field(None, description="For whom the request is.")
    expert: str | None = Field(None, description="Name of an expert, or an alias of one.")
    space: Annotated[SpaceName | None, BeforeValidator(lambda name: name or None)] = Field(
        None, description="The space of a new conversation."
    )
    temporary: bool = Field(False, description="Store nothing of it.")


class AgUiRequest(Camel):
    """AG-UI's `RunAgentInput`; `user` and `expert` are read from `forwardedProps`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "threadId": "thread-1",
                    "runId": "run-1",
                    "messages": [{"id": "m-1", "role": "user", "content": "Hello!"}],
                    "forwardedProps": {"user": "u-1"},
                }
            ]
        }
    )

    thread_id: str = Field(min_length=1, max_length=128, description="The name of the conversation.")
    run_id: str = Field(
        pattern=r"^[\x21-\x7e]{1,255}$", description="Sent again, it is the same turn and nothing happens twice."
    )
    messages: list[AgUiMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    tools: list[dict[str, Any]] | None = Field(None, description="Tools that the front end runs.")
    context: list[dict[str, Any]] | None = Field(None, description="What the front end shows the model.")
    forwarded_props: ForwardedProps | None = None
    state: Any = None
    parent_run_id: str | None = Field(None, description="Runs follow each other by the thread alone.")

    def unread(self) -> list[str]:
        """Return the names of what has no effect."""
        props = self.forwarded_props or ForwardedProps()
        sent = [*(self.model_extra or ()), *(props.model_extra or ()), *(["state"] if self.state else [])]
        return sorted(sent)

    def said(self) -> list[ClientMessage]:
        """Return the messages in the form of `/v1`. Raises `InvalidInput` if the content of a message is not
        valid."""
        shown = [f"{each.get('description')}: {each.get('value')}" for each in self.context or ()]
        said = [ClientMessage(role="system", content="\n".join(shown))] if shown else []
        for place, each in enumerate(self.messages):
            if each.role not in {"system", "developer", "user", "assistant", "tool"}:
                continue
            if isinstance(each.content, dict):
                raise InvalidInput(f"messages.{place}.content", "is neither a text nor a list of parts")
            content = each.content
            if isinstance(content, list):
                content = [_part(part) for part in content]
            message = ClientMessage(
                role=each.role,
                content=content or each.error,
                name=each.name,
                tool_calls=each.tool_calls,
                tool_call_id=each.tool_call_id,
                failed=each.error is not None,
            )
            said.append(message)
        return said


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a message's content; an image gets the form of `/v1`, whichever field holds its source."""
    if part.get("type") != "image":
        return part
    source = part.get("source") or {}
    if source.get("type") == "data":
        return {"type": "image_url", "image_url": f"data:{source.get('mimeType')};base64,{source.get('value')}"}
    return {"type": "image_url", "image_url": source.get("value")}


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
    named = ("user", body.user)
    tools = _functions(body.tools)
    started = await _start(
        starter, body.said(), body.expert, ids, named, tools, body.unread(), temporary=body.temporary
    )
    stream = mapped(started.events, UiMessageMapper(started.turn_id, started.note))
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
    user: Annotated[Id | None, Query(description="Whose chat it is, where nothing else says so.")] = None,
) -> Response:
    """Resume the answer that an AI SDK chat is waiting for, from its beginning; 204 if there is none."""
    user_id = end_user_of(caller, connection.headers, caller.services.settings, ("user", user))
    if user_id is None:
        raise InvalidInput("user", "names nobody; send `user`, or use a key or a token that does")
    running = await caller.services.turns.under_way(caller.tenant_id, user_id, chat_id)
    if running is None:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    report = (await caller.services.turns.get(caller.tenant_id, running)).context_report or {}
    events = caller.runner.follow(caller.tenant_id, running, PART * len(report.get("rounds", [])))
    return EventStream(mapped(events, UiMessageMapper(running)), None, HEADERS)


@router.post(AG_UI_PATH, response_class=StreamingResponse, responses=_STREAM)
async def ag_ui(body: AgUiRequest, starter: TurnStarter, last_seen: LastSeen) -> EventStream:
    """Run AG-UI's agent; the same run sent again, with `Last-Event-ID`, resumes where it broke."""
    props = body.forwarded_props or ForwardedProps()
    ids = ClientIds(session=_session("threadId", body.thread_id), space=props.space, idempotency_key=body.run_id)
    named = ("forwardedProps.user", props.user)
    expert, tools = props.expert or "default", _functions(body.tools)
    started = await _start(
        starter, body.said(), expert, ids, named, tools, body.unread(), temporary=props.temporary
    )
    mapper = AgUiMapper(started.turn_id, started.note, thread_id=body.thread_id, run_id=body.run_id)
    return EventStream(mapped(started.events, mapper, last_seen), started.abandon, started.headers)


async def _start(
    starter: StartsTurns,
    said: Sequence[ClientMessage],
    expert: str,
    ids: ClientIds,
    named: tuple[str, str | None],
    tools: ClientTools | None,
    unread: Sequence[str],
    *,
    temporary: bool,
) -> StartedTurn:
    user_id = end_user_of(starter.caller, starter.headers, starter.services.settings, named)
    budget = budget_of(starter.headers)
    request = read_messages(said)
    ignored = [*names_in_header(unread), *(["files"] if holds_files(said) else [])]
    asking = ReadRequest(expert, request, ids, user_id, not temporary, ignored, budget=budget, tools=tools)
    return await start_turn(starter, asking)


def _functions(tools: dict[str, dict[str, Any]] | list[dict[str, Any]] | None) -> ClientTools | None:
    """Return the client's tools in the form of `/v1`."""
    listed = [{**about, "name": name} for name, about in tools.items()] if isinstance(tools, dict) else tools or []
    functions = [
        {"type": "function", **each, "parameters": each.get("parameters") or each.get("inputSchema") or {}}
        for each in listed
    ]
    return client_tools(functions)


def _session(field: str, name: str) -> str:
    if not is_id(name):
        raise InvalidInput(field, RULE)
    return composed(name)
