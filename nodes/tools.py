"""tools: runs the tools that the model called, all at once."""

from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from services.memory.trust import own_words
from services.tools.executor import ToolExecutor
from services.tools.proposing import foreign_texts
from services.usage.request_budgets import allowance
from state.context import TurnContext
from state.conversation import ConversationState


async def tools(
    state: ConversationState, runtime: Runtime[TurnContext], *, executor: ToolExecutor
) -> ConversationState:
    """Run the tool calls of the model's last message."""
    asked = state["messages"][-1]
    calls = asked.tool_calls if isinstance(asked, AIMessage) else []

    def on_event(status: str, content: dict[str, Any]) -> None:
        runtime.stream_writer({"status": status, "content": content})

    done = tuple(change["summary"] for change in state.get("memory_changes", []) if change["operation_id"])
    said = [each["content"] for each in state.get("history", []) if each["role"] == "user"]
    context = replace(
        runtime.context,
        memory_changes=done,
        not_recalled=tuple(state.get("not_recalled", ())),
        said=tuple(own_words(each) for each in (*said, state["message"])),
        foreign=foreign_texts(
            state["message"], state["messages"], state.get("retrieval_results", []), state.get("attached", [])
        ),
    )
    results = await executor.run(calls, context, on_event, within_s=allowance(state).besides_answer_s)
    return {"messages": list(results), "tool_rounds": state.get("tool_rounds", 0) + 1}
