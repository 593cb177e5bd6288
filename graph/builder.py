"""The graph: nodes with the services that each may touch, and the edges between them."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, Protocol, cast, get_args, get_type_hints

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from nodes.generate import generate
from nodes.heard import heard
from nodes.history import history
from nodes.no_record import no_record
from nodes.pause import pause
from nodes.persist import persist
from nodes.quick import quick
from nodes.retrieve import retrieve
from nodes.route import route
from nodes.tools import tools
from services.bootstrap import Services
from services.context.sources.knowledge import HANDLERS
from services.context.wiring import features_on
from services.errors import DatabaseUnavailable
from services.platform.metrics import NODE_SECONDS
from services.platform.patience import despite
from state.client_tools import calls_of, is_answered, open_calls
from state.conversation import ConversationState, GraphState, with_update
from state.turn import OpenTurn

EVENTS: ContextVar[Callable[[dict[str, Any]], None] | None] = ContextVar("turn_events", default=None)
"""Function that takes the events that nodes of the running turn write; None = they go into LangGraph's stream,
which Studio reads. With that stream every step runs in its own task beside another that waits for events, and
each event wakes the loop: together a twentieth of the CPU of a served turn."""


class Node(Protocol):
    """A node with its services bound. LangGraph passes the runtime by the name of the parameter."""

    def __call__(self, state: ConversationState, runtime: Runtime[OpenTurn]) -> Awaitable[ConversationState]: ...


NodeResult = GraphState | Command[str]


class MeasuredNode(Protocol):
    """A node as LangGraph calls it."""

    def __call__(self, state: GraphState, runtime: Runtime[OpenTurn]) -> Awaitable[NodeResult]: ...


Choice = Callable[[ConversationState], str]
"""Function that names the next node; its return type lists the nodes that it may name."""


TurnGraph = StateGraph[GraphState, OpenTurn, GraphState, GraphState]


_OUTAGE_S = 60.0
"""Seconds for which a turn waits for a database that may be restarting, to read what its prompt needs and to
store its answer. Both can be repeated without harm; the model is never asked twice."""
_NEED_THE_DATABASE = frozenset({"history", "pause", "persist"})


def build_graph(services: Services, schema: type[GraphState] = GraphState) -> TurnGraph:
    """START → route → history → (retrieve) → (quick) → generate ⇄ tools → persist → END, not compiled.

    Calls of the client's tools end the run in `pause`; the next part of the turn begins with `generate`.

    `generate_kb` and `generate_rag` are the same function: the first with the prompt strategy that the routed
    knowledge base names. A question about days on which nothing was said goes history → no_record → persist, and
    an exchange that another agent has answered history → heard → persist. Under a `schema` with `messages`, the
    answer becomes one of them.
    """
    settings = services.settings
    answer = partial(generate, models=services.models, tools=services.tools, estimators=services.estimators)
    nodes: dict[str, Node] = {
        "route": partial(route, tools=services.tools, features=features_on(settings)),
        "history": partial(
            history,
            sources=services.sources,
            conversation=services.conversation,
            topics=services.topics,
            models=services.models,
            tools=services.tools,
            estimators=services.estimators,
            changes=services.memory.changes,
        ),
        "no_record": no_record,
        "heard": heard,
        "retrieve": partial(retrieve, knowledge=services.knowledge.search),
        "quick": partial(
            quick,
            models=services.models,
            executor=services.tool_executor,
            estimators=services.estimators,
            compose=settings.tools_compose,
            filler=settings.tools_filler,
        ),
        "generate_rag": partial(answer, handlers={}),
        "generate_kb": partial(answer, handlers=HANDLERS),
        "tools": partial(tools, executor=services.tool_executor, origins=services.memory.foreign_origins),
        "pause": partial(pause, paused_turns=services.paused_turns),
        "persist": partial(
            persist,
            turns=services.turns,
            episodes=settings.memory_episodes,
            changes=services.memory.changes,
            promises=services.promises,
            working_sets=services.memory.working_sets,
        ),
    }
    # A node names the next one in its update: LangGraph's conditional edges would copy the whole state to ask.
    choices: dict[str, Choice] = {
        "history": after_history,
        "retrieve": after_retrieve,
        "quick": generation,
        "generate_rag": after_generate,
        "generate_kb": after_generate,
        "tools": after_tools,
    }
    graph = TurnGraph(schema, context_schema=OpenTurn)
    for name, node in nodes.items():
        choice = choices.get(name)
        graph.add_node(
            name,
            _measured(name, node, choice),
            input_schema=schema,
            destinations=get_args(get_type_hints(choice)["return"]) if choice else None,
        )
    graph.add_edge(START, "route")
    graph.add_edge("route", "history")
    graph.add_edge("no_record", "persist")
    graph.add_edge("heard", "persist")
    graph.add_edge("pause", END)
    graph.add_edge("persist", END)
    return graph


def _measured(name: str, node: Node, choice: Choice | None) -> MeasuredNode:
    """Record how long a node takes: in the metrics, in the turn's timings and, with `debug`, in the stream.
    With a `choice`, continue at the node that it names; it sees the state after the node."""
    timed = "generate" if name in {"generate_kb", "generate_rag"} else name
    seconds = NODE_SECONDS.labels(timed)

    async def measured(state: GraphState, runtime: Runtime[OpenTurn]) -> NodeResult:
        before = state["turn"]
        if write := EVENTS.get():
            runtime = runtime.override(stream_writer=write)
        begun = time.perf_counter()
        if name in _NEED_THE_DATABASE:
            work = partial(node, before, runtime)
            update = await despite(DatabaseUnavailable, work, within_s=_OUTAGE_S)
        else:
            update = await node(before, runtime)
        taken = time.perf_counter() - begun
        seconds.observe(taken)
        milliseconds = round(taken * 1000, 2)
        earlier = before.get("timings", {}).get(f"{timed}_ms", 0.0)  # earlier rounds of tools
        update["timings"] = {**update.get("timings", {}), f"{timed}_ms": round(earlier + milliseconds, 2)}
        if runtime.context.input.get("debug"):
            entry = {"node": name, "duration_ms": milliseconds, "wrote": sorted(update)}
            runtime.stream_writer({"status": "execution_log", "content": entry})
            update["execution_logs"] = [entry]
        if name == "persist" and "messages" in state:
            turn = runtime.context
            said = [AIMessage(before["answer"], id=str(turn.answer_message_id))] if before["answer"] else []
            return cast("GraphState", {"turn": update, "messages": said})
        if choice is None:
            return {"turn": update}
        return Command(update={"turn": update}, goto=choice(with_update(before, update)))

    return measured


def after_history(
    state: ConversationState,
) -> Literal["heard", "no_record", "retrieve", "quick", "generate_kb", "generate_rag"]:
    """Skip the model if another agent has answered, or for days on which nothing was said. Knowledge bases are
    searched only if they may help."""
    if "answer" in state:
        return "heard"
    if state.get("told_without_model"):
        return "no_record"
    return "retrieve" if state.get("use_retrieval") else after_retrieve(state)


def after_retrieve(state: ConversationState) -> Literal["quick", "generate_kb", "generate_rag"]:
    """Run tools before asking the model only if the message itself asks for them."""
    return "quick" if state.get("quick_tools") else generation(state)


def generation(state: ConversationState) -> Literal["generate_kb", "generate_rag"]:
    """Choose `generate_kb` for a knowledge base, whose handler may assemble its prompts."""
    return "generate_kb" if state.get("handler") else "generate_rag"


def after_generate(state: ConversationState) -> Literal["tools", "pause", "persist"]:
    """Run the service's tools that the model called; without any call the answer is complete."""
    ours, theirs = calls_of(state["messages"][-1])
    if ours:
        return "tools"
    return "pause" if theirs else "persist"


def after_tools(state: ConversationState) -> Literal["pause", "persist", "generate_kb", "generate_rag"]:
    """Ask the model again, unless it has called tools of the client beside ours, or has answered already."""
    if open_calls(state["messages"]):
        return "pause"
    return "persist" if is_answered(state["messages"]) else generation(state)


class _PlainNode(Runnable[Any, Any]):
    """A node, followed by what writes its update."""

    def __init__(self, sequence: Runnable[Any, Any], steps: Sequence[Runnable[Any, Any]]) -> None:
        self._sequence = sequence
        self._node, *self._writers = steps

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._sequence.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        callbacks: Any = config.get("callbacks") if config else None
        if kwargs or (callbacks is not None and getattr(callbacks, "handlers", True)):
            return await self._sequence.ainvoke(input, config, **kwargs)
        update = await self._node.ainvoke(input, config)
        for writer in self._writers:
            update = await writer.ainvoke(update, config)
        return update


def run_plainly(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Let the nodes of a compiled graph run directly while nothing listens to LangChain's callbacks.

    LangGraph wraps each node in a sequence that reports its beginning and its end to callbacks, and runs it in its
    own task: a fifth of the CPU that LangGraph takes for a turn. If something listens, such as a tracer, a node
    still runs in that sequence.
    """
    for each in graph.nodes.values():
        # The sequence's class is LangGraph's own affair: what has no steps runs as it is.
        if each.node is not None and (steps := getattr(each.node, "steps", None)):
            each.node = _PlainNode(each.node, steps)
