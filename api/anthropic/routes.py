"""`/v1/messages`: a turn in the form of Anthropic's Messages API, and the count of its tokens."""

import json
import re
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access import Chatter, TurnStarter
from api.anthropic.events import message_of, message_stream
from api.anthropic.schemas import MessagesRequest
from api.openai.chat import ERRORS, start_answer
from api.openai.client_message import text_of
from api.openai.sessions import ClientIds, FindUser
from api.problems import ANTHROPIC_PATHS, response_of_failed
from api.request_bodies import JsonRoute
from api.streams import EventStream, last_event
from services.llm.token_estimates import MESSAGE_OVERHEAD, count_tokens

router = APIRouter(prefix="/v1/messages", tags=["anthropic"], responses=ERRORS, route_class=JsonRoute)

_CODING_AGENT = re.compile(r"(user_[0-9a-f]{16,64})_account_.*_session_.*", re.DOTALL)
"""Name that Claude Code gives a user; it differs in each session."""


@router.post(
    "",
    response_class=JSONResponse,
    responses={200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "The answer."}},
)
async def messages(body: MessagesRequest, starter: TurnStarter) -> Response:
    """Answer the last message of the user, with the memory of that user."""
    body.refuse_unsupported()
    named, find = _user_of(body)
    asked = await start_answer(starter, named, body.said(), find)
    if body.stream:
        return EventStream(message_stream(asked), asked.abandon, asked.headers)
    last = await last_event(asked.events)
    if last.status == "error":
        return response_of_failed(last, asked.headers, path=ANTHROPIC_PATHS)
    return JSONResponse(message_of(asked, last), headers=asked.headers)


@router.post("/count_tokens", response_class=JSONResponse)
async def count(body: MessagesRequest, _: Chatter) -> Response:
    """Estimate the tokens of a request, without what the service adds from memory."""
    said = sum(count_tokens(text_of(each)) + MESSAGE_OVERHEAD for each in body.said())
    tools = body.client_tools
    described = count_tokens(json.dumps(tools["tools"], ensure_ascii=False)) if tools else 0
    return JSONResponse({"input_tokens": said + described})


def _user_of(body: MessagesRequest) -> tuple[MessagesRequest, FindUser | None]:
    """Return the request with the user in its metadata, and a function that finds a user if none is named."""
    name = str((body.metadata or {}).get("user_id") or "").strip()
    found = _CODING_AGENT.fullmatch(name)
    if found is None:
        return (body if body.user or not name else body.model_copy(update={"user": name})), None
    device = found[1]

    async def find(user_id: str | None, ids: ClientIds) -> tuple[str | None, ClientIds]:
        return user_id or device, ids

    return body, find


@dataclass(frozen=True)
class ApiKeyHeader:
    """ASGI middleware: accepts the key of Anthropic's clients in the header `x-api-key`."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Use the header as a bearer token if there is no other."""
        if scope["type"] == "http" and scope["path"].startswith(ANTHROPIC_PATHS):
            given = dict(scope["headers"])
            key = given.get(b"x-api-key")
            if key and b"authorization" not in given:
                scope = {**scope, "headers": [*scope["headers"], (b"authorization", b"Bearer " + key)]}
        await self.app(scope, receive, send)
