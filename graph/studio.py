"""The graph for LangGraph Studio: `langgraph dev` serves what `studio_graph` yields.

In the API a turn is opened before the graph runs. Studio only has an input to send, so here the graph
opens its turn itself, and is otherwise the same.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Overwrite
from pydantic import TypeAdapter, ValidationError
from uuid_utils.compat import uuid7

from graph.builder import build_graph
from graph.turns.requests import LONGEST_TURN_S, TurnRequest, initial_state, new_turn, turn_context
from graph.turns.run import CompiledTurnGraph
from services.bootstrap import Services, open_services
from services.conversations.turn import TurnOutcome
from services.conversations.turns import Turns
from services.conversations.values import MAX_MESSAGE_CHARACTERS
from services.engines import migrate_if_owner, open_engines
from services.errors import AnamnesisError, Conflict, DatabaseUnavailable
from services.identity.tenants import DEFAULT_TENANT
from services.platform.proxies import prepare_proxies
from services.platform.settings import Settings, load_settings
from services.validation import RULE, is_id
from services.warm_up import warm_up
from state.context import TurnContext
from state.conversation import GraphState, TurnInput

STUDIO_USER = "studio"
_INPUT = TypeAdapter(TurnInput)
_EXAMPLE = 'an input is an object such as {"message": "Hello"}'


class StudioGraph(CompiledTurnGraph):
    """The compiled graph, which opens a turn for every input without one."""

    def __init__(self, *, turns: Turns, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.turns = turns

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The form that Studio shows: what a caller sends, not the whole state."""
        return _INPUT.json_schema()

    async def astream(
        self,
        input: GraphState | TurnInput | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: TurnContext | dict[str, Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Store the message, open the turn, and stream the graph; a resumed run is passed on."""
        given = TurnContext(**context) if isinstance(context, dict) else context or TurnContext()
        if input is not None and not isinstance(input, Command) and not given.turn_id:
            thread = (config or {}).get("configurable", {}).get("thread_id") or "studio"
            asked = TurnInput(user_id=STUDIO_USER, session_id=thread)
            asked.update(_checked(input))
            tenant_id = UUID(given.tenant_id) if given.tenant_id else DEFAULT_TENANT
            # Nobody renews a lease here, and no turn waits.
            request = TurnRequest(tenant_id, asked, on_conflict="reject", lease=timedelta(seconds=LONGEST_TURN_S))
            turn = await self.turns.open(new_turn(request))
            opened = turn_context(turn, debug=given.debug)
            given = replace(opened, locale=given.locale or opened.locale)
            # A Studio thread keeps its state from run to run; a turn starts from a fresh one.
            state: Any = {"turn": Overwrite(initial_state(turn, request.input, datetime.now(UTC)))}
        else:
            state = input
        try:
            async for part in super().astream(state, config, context=given, **options):
                yield part
        except AnamnesisError as error:
            await self._end_as_failed(given)
            raise RuntimeError(error.message) from error  # Studio shows the words of no exception of our own
        except Exception:
            await self._end_as_failed(given)
            raise

    async def _end_as_failed(self, context: TurnContext) -> None:
        if not context.turn_id:
            return
        error = {"code": "failed_in_studio", "message": "The run failed in Studio.", "retryable": True}
        with contextlib.suppress(Conflict, DatabaseUnavailable):
            await self.turns.end(
                UUID(context.tenant_id),
                UUID(context.turn_id),
                uuid7(),
                TurnOutcome(status="failed", error=error),
            )


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
        if name in checked and not is_id(str(checked.get(name))):
            raise ValueError(f"{name} {RULE}")
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
