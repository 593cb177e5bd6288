"""The graph for LangGraph Studio: `langgraph dev` serves what `studio_graph` yields.

In the API a turn is opened before the graph runs. Studio only has an input to send, so here the graph
opens its turn itself, and is otherwise the same.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
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


class StudioContext(TypedDict, total=False):
    """What Studio gives a run besides its input."""

    tenant_id: str
    """UUID of the tenant; none = the default one."""


_INPUT, _CONTEXT = TypeAdapter(TurnInput), TypeAdapter(StudioContext)


class StudioGraph(CompiledTurnGraph):
    """The compiled graph, which opens a turn for every input without one."""

    def __init__(self, *, turns: Turns, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.turns = turns

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
        context: OpenTurn | StudioContext | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Store the message, open the turn, and stream the graph; a resumed run is passed on."""
        turn = context if isinstance(context, OpenTurn) else None
        if input is None or isinstance(input, Command) or turn is not None:
            async for part in super().astream(cast("Any", input), config, context=turn, **options):
                yield part
            return
        thread = (config or {}).get("configurable", {}).get("thread_id") or "studio"
        turn = await self._opened(input, cast("StudioContext", context or {}), thread)
        # A Studio thread keeps its state from run to run; a turn starts from a fresh one.
        state: Any = {"turn": Overwrite(ConversationState())}
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
        asked = TurnInput(user_id=STUDIO_USER, session_id=thread)
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


def _checked(given: object) -> TurnInput:
    """What is typed into Studio, as an input.

    Raises:
        ValueError: it is none; says why in one sentence.
    """
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
    services = await _services()
    compiled = build_graph(services).compile()
    yield StudioGraph(turns=services.turns, **vars(compiled))


async def _services() -> Services:
    global _started  # noqa: PLW0603 — Studio offers no place to keep what outlives a run
    async with _starting:
        if _started is None:
            prepare_proxies()
            settings = await asyncio.to_thread(_load_settings)
            engines = await _lifetime.enter_async_context(open_engines(settings))
            await migrate_if_owner(engines)
            _started = await _lifetime.enter_async_context(open_services(settings, engines))
            await warm_up(settings, _started.embedder)
            _started.mcp_servers.start()
    return _started
