"""The graph: nodes with the services that each may touch, and the edges between them."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, get_args, get_type_hints

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy

from graph.edges import after_generate, after_history, after_retrieve, generation
from graph.events import EVENTS
from nodes.generate import generate
from nodes.history import history
from nodes.no_record import no_record
from nodes.persist import persist
from nodes.quick import quick
from nodes.retrieve import retrieve
from nodes.route import route
from nodes.tools import tools
from services.bootstrap import Services
from services.context.features import features_on
from services.context.sources.knowledge import HANDLERS
from services.errors import DatabaseUnavailable
from services.platform.metrics import NODE_SECONDS
from state.context import TurnContext
from state.conversation import ConversationState, GraphState, with_update


class Node(Protocol):
    """A node with its services bound. LangGraph passes the runtime by the name of the parameter."""

    def __call__(
        self, state: ConversationState, runtime: Runtime[TurnContext]
    ) -> Awaitable[ConversationState]: ...


NodeResult = GraphState | Command[str]


class MeasuredNode(Protocol):
    """A node as LangGraph calls it."""

    def __call__(self, state: GraphState, runtime: Runtime[TurnContext]) -> Awaitable[NodeResult]: ...


Choice = Callable[[ConversationState], str]
"""Names the next node; its return type names all that it may choose."""

TurnGraph = StateGraph[GraphState, TurnContext, GraphState, GraphState]

# The database may restart during a turn: reading and storing are retried for some seconds. Both may run
# twice without harm; the model is never asked twice.
_THROUGH_A_RESTART = RetryPolicy(
    retry_on=DatabaseUnavailable, max_attempts=6, initial_interval=0.2, backoff_factor=2.0, max_interval=3.0
)


def build_graph(services: Services) -> TurnGraph:
    """START → route → history → (retrieve) → (quick) → generate ⇄ tools → persist → END, not compiled.

    `generate_kb` and `generate_rag` are the same function: the first with the prompt strategy that the routed
    knowledge base names. A question about days on which nothing was said goes history → no_record → persist.
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
        "retrieve": partial(retrieve, knowledge=services.knowledge.search),
        "quick": partial(quick, executor=services.tool_executor, filler=settings.tools_filler),
        "generate_rag": partial(answer, handlers={}),
        "generate_kb": partial(answer, handlers=HANDLERS),
        "tools": partial(tools, executor=services.tool_executor, origins=services.memory.foreign_origins),
        "persist": partial(
            persist,
            turns=services.turns,
            episodes=settings.memory_episodes,
            changes=services.memory.changes,
            working_sets=services.memory.working_sets,
        ),
    }
    # A node names the next one in its own update: LangGraph's conditional edges copy the whole state to ask.
    choices: dict[str, Choice] = {
        "history": after_history,
        "retrieve": after_retrieve,
        "quick": generation,
        "generate_rag": after_generate,
        "generate_kb": after_generate,
        "tools": generation,
    }
    graph = TurnGraph(GraphState, context_schema=TurnContext)
    for name, node in nodes.items():
        choice = choices.get(name)
        graph.add_node(
            name,
            _measured(name, node, choice),
            retry_policy=_THROUGH_A_RESTART if name in {"history", "persist"} else None,
            destinations=get_args(get_type_hints(choice)["return"]) if choice else None,
        )
    graph.add_edge(START, "route")
    graph.add_edge("route", "history")
    graph.add_edge("no_record", "persist")
    graph.add_edge("persist", END)
    return graph


def _measured(name: str, node: Node, choice: Choice | None) -> MeasuredNode:
    """Note how long a node takes: in the metrics, in the turn's timings and, with `debug`, in the stream.

    With a `choice`, go on to what it names; it sees the state as the node leaves it.
    """
    timed = "generate" if name in {"generate_kb", "generate_rag"} else name
    seconds = NODE_SECONDS.labels(timed)

    async def measured(state: GraphState, runtime: Runtime[TurnContext]) -> NodeResult:
        before = state["turn"]
        if write := EVENTS.get():
            runtime = runtime.override(stream_writer=write)
        begun = time.perf_counter()
        update = await node(before, runtime)
        taken = time.perf_counter() - begun
        seconds.observe(taken)
        milliseconds = round(taken * 1000, 2)
        earlier = before.get("timings", {}).get(f"{timed}_ms", 0.0)  # rounds of tools
        update["timings"] = {**update.get("timings", {}), f"{timed}_ms": round(earlier + milliseconds, 2)}
        if runtime.context.debug:
            entry = {"node": name, "duration_ms": milliseconds, "wrote": sorted(update)}
            runtime.stream_writer({"status": "execution_log", "content": entry})
            update["execution_logs"] = [entry]
        if choice is None:
            return {"turn": update}
        return Command(update={"turn": update}, goto=choice(with_update(before, update)))

    return measured
