"""quick: runs the tools that the message itself asks for, before the model is asked."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langgraph.runtime import Runtime

from services.context.request_budget import allowance
from services.text.language import language_of
from services.tools.executor import ToolExecutor
from state.context import TurnContext
from state.conversation import ConversationState

_FILLER = {"en": "Let me check…", "zh": "好的，让我查一下…"}


async def quick(
    state: ConversationState, runtime: Runtime[TurnContext], *, executor: ToolExecutor, filler: bool
) -> ConversationState:
    """Run the quick tools all at once; their results follow the prompt like those of the model's own calls."""
    write = runtime.stream_writer
    calls = [ToolCall(name=call["name"], args=call["arguments"], id=call["id"]) for call in state["quick_tools"]]
    asked_filler = state.get("filler")
    if filler if asked_filler is None else asked_filler:
        write({"status": "filler", "content": _FILLER[language_of([state["message"]])]})

    def on_event(status: str, content: dict[str, Any]) -> None:
        write({"status": status, "content": content})

    within_s = allowance(state).besides_answer_s
    results = await executor.run(calls, runtime.context, on_event, within_s=within_s)
    messages: list[AnyMessage] = [AIMessage("", tool_calls=calls), *results]
    return {"tool_rounds": state.get("tool_rounds", 0) + 1, "messages": messages}
