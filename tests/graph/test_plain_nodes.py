"""Nodes that run as they are do the same as in LangGraph's sequences; callbacks are still told of them."""

from typing import Annotated, Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, RetryPolicy
from typing_extensions import TypedDict

from graph.builder import run_plainly


class _State(TypedDict):
    said: Annotated[list[str], lambda before, more: [*before, *more]]


_Graph = CompiledStateGraph[_State, None, _State, _State]


def _graph(failures: list[Exception], *, plain: bool) -> _Graph:
    """Return a graph of two nodes: the first raises the failures one by one, and then names the second."""

    async def first(state: _State) -> Command[str]:
        if failures:
            raise failures.pop()
        return Command(update={"said": ["first"]}, goto="second")

    async def second(state: _State) -> _State:
        return {"said": [f"second after {state['said'][-1]}"]}

    graph = StateGraph(_State)
    retry = RetryPolicy(retry_on=ConnectionError, initial_interval=0.0, max_interval=0.0, jitter=False)
    graph.add_node("first", first, destinations=("second",), retry_policy=retry)
    graph.add_node("second", second)
    graph.add_edge(START, "first")
    graph.add_edge("second", END)
    compiled: _Graph = graph.compile()
    if plain:
        run_plainly(compiled)
    return compiled


class _Heard(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended = 0

    async def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **kwargs: Any) -> None:
        self.begun.append(name)

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.ended += 1


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_plain_graph_streams_the_same_updates_and_tries_again_as_often(failures: int) -> None:
    streamed = []
    for plain in (False, True):
        graph = _graph([ConnectionError() for _ in range(failures)], plain=plain)
        streamed.append([update async for update in graph.astream({"said": ["asked"]}, stream_mode="updates")])
    assert streamed[0] == streamed[1]
    assert streamed[1] == [{"first": {"said": ["first"]}}, {"second": {"said": ["second after first"]}}]


async def test_callbacks_are_told_of_plain_nodes() -> None:
    told = []
    for plain in (False, True):
        heard = _Heard()
        await _graph([], plain=plain).ainvoke({"said": ["asked"]}, {"callbacks": [heard]})
        assert heard.ended == len(heard.begun)
        told.append(heard.begun)
    assert told[0] == told[1]
    assert {"first", "second"} <= set(told[1])
