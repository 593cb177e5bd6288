"""The graph for LangGraph Studio and for other graphs: `langgraph dev` serves what `studio_graph` yields.

In the API a turn is opened before the graph runs. Studio only has an input to send, and a graph of which this one
is a node its messages, so here the graph opens its turn itself, and is otherwise the same.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any, cast
from uuid import UUID

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages
from langgraph.runtime import get_runtime
from langgraph.types import Command, Overwrite
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from graph.builder import build_graph
from graph.turns.run import CompiledTurnGraph
from services.bootstrap import Services, open_services
from services.conversations.turn import TurnOutcome, TurnRequest
from services.conversations.turns import Turns
from services.conversations.values import MAX_MESSAGE_CHARACTERS
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError, Conflict, DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform.proxies import prepare_proxies
from services.platform.settings import Settings, load_settings
from services.validation import RULE, composed, is_id
from services.warm_up import warm_up
from state.budget import LONGEST_S
from state.conversation import ConversationState, GraphState
from state.turn import OpenTurn, TurnInput

STUDIO_USER = "studio"
_EXAMPLE = 'an input is an object such as {"message": "Hello"}'
_OF_CONTEXT = ("user_id", "session_id", "expert", "space")


class ChatState(GraphState):
    """The state with the messages of a thread, as chat front ends and other graphs have them."""

    messages: Annotated[list[AnyMessage], add_messages]


class StudioContext(TypedDict, total=False):
    """Context that Studio gives a run besides its input."""

    tenant_id: str
    """UUID of the tenant; none = the default one."""
    user_id: str
    session_id: str
    """Absent = the thread."""
    expert: str
    space: str


_INPUT, _CONTEXT = TypeAdapter(TurnInput), TypeAdapter(StudioContext)


class StudioGraph(CompiledTurnGraph):
    """The compiled graph, which opens a turn for every input without one.

    As a node of another graph it takes the last of its `messages`, and adds the answer; the other graph's context
    may name `user_id`, `session_id`, `expert` and `space`.
    """

    def __init__(self, *, turns: Turns, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.turns = turns
        self._loop = asyncio.get_running_loop()

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **options: Any
    ) -> Any:
        """Run it from a thread beside the event loop in which it was opened. Raises `RuntimeError` if this
        thread is that of the event loop, which would wait for itself."""
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                raise TypeError("In an event loop call ainvoke.")
        running = self.ainvoke(input, config, context=context, **options)
        return asyncio.run_coroutine_threadsafe(running, self._loop).result()

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The form that Studio shows: what a caller sends, not the whole state."""
        return _INPUT.json_schema()

    def get_context_jsonschema(self) -> dict[str, Any]:
        """The form of what holds for a run: the turn itself is opened here."""
        return _CONTEXT.json_schema()

    async def astream(
        self,
        input: GraphState | TurnInput | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Store the message, open the turn, and stream the graph; a resumed run is passed on."""
        turn = context if isinstance(context, OpenTurn) else None
        if input is None or isinstance(input, Command) or turn is not None:
            async for part in super().astream(cast("Any", input), config, context=turn, **options):
                yield part
            return
        thread = (config or {}).get("configurable", {}).get("thread_id") or "studio"
        given, messages = _last_message(input)
        turn = await self._opened(given, _named(context), thread)
        messages = messages or [HumanMessage(turn.message, id=str(turn.user_message_id))]
        # A Studio thread keeps its state from run to run; a turn starts from a fresh one.
        state: Any = {"turn": Overwrite(ConversationState()), "messages": messages}
        try:
            async for part in super().astream(state, config, context=turn, **options):
                yield part
        except AnamnesisError as error:
            await self._end_as_failed(turn)
            raise RuntimeError(error.message) from error  # Studio shows the words of no exception of our own
        except Exception:
            await self._end_as_failed(turn)
            raise

    async def _opened(self, given: object, context: StudioContext, thread: str) -> OpenTurn:
        of_run = {name: context[name] for name in _OF_CONTEXT if context.get(name)}  # type: ignore[literal-required]
        asked = cast("TurnInput", {"user_id": STUDIO_USER, "session_id": thread, **of_run})
        asked.update(_checked(given))
        asked["approvals"] = False  # nobody is asked here
        tenant_id = UUID(context["tenant_id"]) if context.get("tenant_id") else DEFAULT_TENANT
        # Nobody renews a lease here, and no turn waits.
        lease = timedelta(seconds=LONGEST_S)
        return await self.turns.open(TurnRequest(tenant_id, asked, on_conflict="reject", lease=lease))

    async def _end_as_failed(self, turn: OpenTurn) -> None:
        error = {"code": "failed_in_studio", "message": "The run failed in Studio.", "retryable": True}
        with contextlib.suppress(Conflict, DatabaseUnavailable):
            await self.turns.end(turn, TurnOutcome(status="failed", error=error))


def _last_message(given: Any) -> tuple[Any, list[AnyMessage]]:
    """Return an input with its `message`, and the messages that it came in; none = it names the message itself.
    Raises `ValueError` if the last of the messages is not the user's."""
    if not isinstance(given, dict) or "messages" not in given:
        return given, []
    messages = cast("list[AnyMessage]", add_messages([], given["messages"]))
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage):
        raise ValueError("the last of messages must be the user's")
    blocks = last.content if isinstance(last.content, list) else []
    images = [each["image_url"]["url"] for each in blocks if isinstance(each, dict) and "image_url" in each]
    asked = {name: value for name, value in given.items() if name not in {"messages", "turn"}}
    return {**asked, "message": last.text, **({"images": images} if images else {})}, messages


def _named(context: Any) -> StudioContext:
    """Return what the context of a run names, which another graph may have in a class of its own."""
    if context is None:
        with contextlib.suppress(RuntimeError):
            context = get_runtime().context
    names = ("tenant_id", *_OF_CONTEXT)
    found = context if isinstance(context, dict) else {name: getattr(context, name, None) for name in names}
    return cast("StudioContext", {name: found[name] for name in names if found.get(name)})


def _checked(given: object) -> TurnInput:
    """Read what was typed into Studio as an input. Raises `ValueError` if it is none; says why in one sentence."""
    if not isinstance(given, dict):
        raise ValueError(_EXAMPLE)
    if unknown := sorted(map(str, given.keys() - TurnInput.__annotations__.keys())):
        raise ValueError(f"{unknown[0]} is not known here; {_EXAMPLE}")
    message = given.get("message")
    if not isinstance(message, str) or not message.strip() or len(message) > MAX_MESSAGE_CHARACTERS:
        most = f"1 to {MAX_MESSAGE_CHARACTERS} characters"
        raise ValueError(f"message must be a text of {most}; {_EXAMPLE}")
    try:
        checked = _INPUT.validate_python(given)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}; {_EXAMPLE}") from None
    for name in ("user_id", "session_id"):
        if name in checked:
            if not is_id(str(checked.get(name))):
                raise ValueError(f"{name} {RULE}")
            checked[name] = composed(checked[name])
    return checked


def _load_settings() -> Settings:
    """The settings, their data folder absolute: to make it so later would ask the system within the event loop."""
    settings = load_settings()
    return settings.model_copy(update={"data_dir": settings.data_dir.resolve()})


_lifetime = AsyncExitStack()
_started: Services | None = None
_starting = asyncio.Lock()


@asynccontextmanager
async def studio_graph() -> AsyncIterator[StudioGraph]:
    """Yield the graph. The first run starts its services, which live as long as the server.

    `langgraph dev` enters this for every run. The embedded engines end with the process.
    """
    yield _graph(await _services())


@asynccontextmanager
async def open_graph(settings: Settings | None = None) -> AsyncIterator[StudioGraph]:
    """Open the graph with its engines, for a program of one's own; at the end they are closed.

    Args:
        settings: None = those of the environment.
    """
    async with AsyncExitStack() as stack:
        services = await _opened_services(stack, settings)
        yield _graph(services)


def _graph(services: Services) -> StudioGraph:
    return StudioGraph(turns=services.turns, **vars(build_graph(services, ChatState).compile()))


async def _services() -> Services:
    global _started  # noqa: PLW0603 — Studio offers no place to keep what outlives a run
    async with _starting:
        if _started is None:
            _started = await _opened_services(_lifetime, None)
    return _started


async def _opened_services(stack: AsyncExitStack, settings: Settings | None) -> Services:
    prepare_proxies()
    known = await asyncio.to_thread(_load_settings) if settings is None else settings
    engines = await stack.enter_async_context(open_engines(known))
    await migrate_if_owner(engines)
    services = await stack.enter_async_context(open_services(known, engines))
    await warm_up(known, services.embedder)
    services.mcp_servers.start()
    return services
