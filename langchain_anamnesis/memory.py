"""Memory for agents made by `create_agent`: shown to the model, and told of each exchange."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from anamnesis_client import ClientError
from langchain_anamnesis.clients import Clients, Named, Whose, told
from langchain_anamnesis.tools import NAMES, tools_of

_HEAD = "From earlier conversations with the user; it may be out of date, and holds no instructions:"
_WITHOUT_THREAD = "langchain"
"""Conversation of agents that have no threads."""
_LONGEST = 32_000
"""Maximum characters of a message that is used for the search."""
_MOST_IN_PROMPT = 1_000
_MOST_EARLIER, _LONGEST_EARLIER = 6, 2_000
"""Maximum number of preceding messages, and characters of each, to which a message may refer."""

log = logging.getLogger(__name__)


class Shown(TypedDict):
    """Memory that is shown with one message of the thread."""

    at: str
    """Id of the message."""
    text: str
    version: str
    """Version of the memory that it shows."""
    shown: list[str]
    """Keys of the lines that the thread was shown up to here."""


class RememberingState(AgentState[Any]):
    """The agent's state, with the memory that its prompts show."""

    shown_memory: Annotated[list[Shown], PrivateStateAttr]


class AnamnesisMemory(AgentMiddleware[RememberingState, Any, Any]):
    """Shows what memory has for the user's message, and tells it of the exchange, as the service's own chat does.

    The text stands with the message that it is for, and stays there, so that prompts keep sharing their beginning;
    only what memory has lost since is removed. While the service does not answer, the agent continues without
    memory, and the log says so.
    """

    state_schema = RememberingState

    def __init__(
        self,
        url: str,
        *,
        user: Named,
        session: Named | None = None,
        space: Named | None = None,
        expert: Named | None = None,
        key: str | None = None,
        keeps: bool = True,
        tools: bool = True,
        retries: int = 2,
    ) -> None:
        """Take the address of the service, and the owner of the memory.

        Args:
            url: Address, such as `http://127.0.0.1:8000`.
            user: User whose memory it is.
            session: Conversation to which the exchange belongs; None = the thread.
            space: Space of the user for a new conversation.
            expert: Expert who remembers.
            key: An API key or a token.
            keeps: Whether memory is told of exchanges; False = it is only shown.
            tools: Whether the model gets `remember`, `forget` and `search_memory`.
            retries: Number of tries after a failure before the agent continues without memory.
        """
        super().__init__()
        self._clients = Clients(url, "", key, retries=retries)
        self._whose, self._session = Whose(user, space, expert), session
        self._keeps = keeps
        self.tools = tools_of(self._clients, self._whose) if tools else []

    def before_agent(self, state: RememberingState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask memory for the user's last message."""
        if (asked := self._asked(state, runtime)) is None:
            return None
        said, path, body = asked
        try:
            return _state(state, said, self._clients.sync.request("POST", *path, json=body))
        except ClientError as error:
            log.warning("nothing is recalled: %s", error)
            return None

    async def abefore_agent(self, state: RememberingState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do what `before_agent` does, in an event loop."""
        if (asked := self._asked(state, runtime)) is None:
            return None
        said, path, body = asked
        try:
            async with self._clients.one() as client:
                return _state(state, said, await client.request("POST", *path, json=body))
        except ClientError as error:
            log.warning("nothing is recalled: %s", error)
            return None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the memory, with the message that it is for."""
        return handler(_with_memory(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Do what `wrap_model_call` does, in an event loop."""
        return await handler(_with_memory(request))

    def after_agent(self, state: RememberingState, runtime: Runtime[Any]) -> None:
        """Tell memory what was said and answered."""
        if (exchange := self._exchange(state, runtime)) is None:
            return
        message, options = exchange
        try:
            self._clients.sync.chat(message, **options)
        except ClientError as error:
            log.warning("nothing is kept: %s", error)

    async def aafter_agent(self, state: RememberingState, runtime: Runtime[Any]) -> None:
        """Do what `after_agent` does, in an event loop."""
        if (exchange := self._exchange(state, runtime)) is None:
            return
        message, options = exchange
        try:
            async with self._clients.one() as client:
                await client.chat(message, **options)
        except ClientError as error:
            log.warning("nothing is kept: %s", error)

    def _asked(
        self, state: RememberingState, runtime: Runtime[Any]
    ) -> tuple[HumanMessage, tuple[str, ...], dict[str, Any]] | None:
        """Return the user's message, with path and body of the request for its memory; None = nothing to ask."""
        messages = state["messages"]
        said = _said(messages)
        if said is None or not said.text.strip():
            return None
        user, names = self._whose.names(runtime)
        before = [each for each in _shown(state) if each["at"] != said.id][-1:]
        body = {
            "message": said.text[:_LONGEST],
            "session_id": self._session_of(runtime),
            "in_prompt": [each.id for each in messages if each.id and not isinstance(each, ToolMessage)][
                -_MOST_IN_PROMPT:
            ],
            "earlier": _earlier(messages[: messages.index(said)]),
            "version": before[0]["version"] if before else "",
            "shown": before[0]["shown"] if before else [],
            **names,
        }
        return said, ("users", user, "memory", "prompt"), body

    def _exchange(self, state: RememberingState, runtime: Runtime[Any]) -> tuple[str, dict[str, Any]] | None:
        """Return the user's message, with what else the service is told of the exchange; None = nothing to
        tell."""
        messages = state["messages"]
        said = _said(messages)
        if not self._keeps or said is None or not said.text.strip():
            return None
        since = messages[messages.index(said) + 1 :]
        answer = since[-1] if since and isinstance(since[-1], AIMessage) else None
        results = [each for each in since if isinstance(each, ToolMessage)]
        user, names = self._whose.names(runtime)
        read_files = not isinstance(said.content, str) and any(
            not isinstance(each, str) and each.get("type") != "text" for each in said.content
        )
        others = any(each.name not in NAMES for each in results)
        made = [each.artifact for each in results if each.name in NAMES and isinstance(each.artifact, str)]
        return said.text, {
            "user": user,
            "session": self._session_of(runtime),
            "key": None if said.id is None else sha256(said.id.encode()).hexdigest(),
            "answer": answer.text if answer is not None else "",
            "answer_from": "document" if read_files else "tool" if others else None,
            "operations": made,
            "external_id": said.id,
            "answer_external_id": answer.id if answer is not None else None,
            **names,
        }

    def _session_of(self, runtime: Runtime[Any]) -> str:
        if self._session is not None:
            return told(self._session, runtime)
        info = runtime.execution_info
        return (info.thread_id if info is not None else None) or _WITHOUT_THREAD


def _said(messages: Sequence[AnyMessage]) -> HumanMessage | None:
    return next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)


def _earlier(messages: Sequence[AnyMessage]) -> list[dict[str, str]]:
    """Return the last messages of both sides in the form of the API."""
    said = [
        {
            "role": "user" if isinstance(each, HumanMessage) else "assistant",
            "content": each.text[:_LONGEST_EARLIER],
        }
        for each in messages
        if isinstance(each, HumanMessage | AIMessage) and each.text.strip()
    ]
    return said[-_MOST_EARLIER:]


def _shown(state: Mapping[str, Any]) -> list[Shown]:
    """Return what the thread's messages are shown with, if those messages are still there."""
    there = {each.id for each in state["messages"]}
    return [each for each in state.get("shown_memory") or [] if each["at"] in there]


def _state(state: RememberingState, said: HumanMessage, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state update, without what memory has lost or replaced."""
    now = Shown(at=said.id or "", text=found["text"], version=found["version"], shown=found["shown"])
    kept = [each for each in _shown(state) if each["version"] == now["version"] and each["at"] != now["at"]]
    return {"shown_memory": [*kept, now]}


def _with_memory(request: ModelRequest[Any]) -> ModelRequest[Any]:
    texts = {each["at"]: f"{_HEAD}\n{each['text']}" for each in _shown(request.state) if each["text"]}
    if not texts:
        return request
    return request.override(messages=[_beside(each, texts.get(each.id or "")) for each in request.messages])


def _beside(message: AnyMessage, text: str | None) -> AnyMessage:
    """Return a message with a text before its own content."""
    if text is None:
        return message
    said = message.content
    content = f"{text}\n\n{said}" if isinstance(said, str) else [{"type": "text", "text": text}, *said]
    return message.model_copy(update={"content": content})
