"""Runs the nodes of a served turn as they are, where nobody listens to LangChain's callbacks.

LangGraph wraps each node in a sequence that reports its beginning and its end to callbacks, and runs it in a task
of its own. That is a fifth of the CPU that LangGraph takes of a turn. Where somebody listens, such as a tracer, a
node still runs in that sequence.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.state import CompiledStateGraph


class _PlainNode(Runnable[Any, Any]):
    """A node, and then what writes its update."""

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
    """Let the nodes of a compiled graph run so."""
    for each in graph.nodes.values():
        # The sequence's class is LangGraph's own affair: what has no steps runs as it is.
        if each.node is not None and (steps := getattr(each.node, "steps", None)):
            each.node = _PlainNode(each.node, steps)
