"""quick: runs the tools that the message itself asks for, before the model is asked."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langgraph.runtime import Runtime

from nodes.generate import answer
from services.context.request_budget import allowance
from services.llm.chat_models import ChatModels
from services.llm.token_estimates import TokenEstimators
from services.text.language import language_of
from services.tools.executor import ToolExecutor
from services.tools.executor import compose as compose_answer
from state.conversation import ConversationState
from state.turn import Compose, OpenTurn

_FILLER = {"en": "Let me check…", "zh": "好的，让我查一下…"}
_BETWEEN_PARTS = "\n\n"


async def quick(
    state: ConversationState,
    runtime: Runtime[OpenTurn],
    *,
    models: ChatModels,
    executor: ToolExecutor,
    estimators: TokenEstimators,
    compose: Compose,
    filler: bool,
) -> ConversationState:
    """Run the quick tools all at once; their results follow the prompt like those of the model's own calls.

    With progressive composition the answer begins with the first of several results, or with the days that the
    message also asks about, and `generate` completes it. A request with a budget is answered in one part.
    """
    turn, write = runtime.context, runtime.stream_writer
    language = language_of([turn.message])
    calls = [ToolCall(name=call["name"], args=call["arguments"], id=call["id"]) for call in state["quick_tools"]]
    asked_filler, asked_compose = turn.input.get("filler"), turn.input.get("compose")
    if filler if asked_filler is None else asked_filler:
        write({"status": "filler", "content": _FILLER[language]})

    def on_event(status: str, content: dict[str, Any]) -> None:
        write({"status": status, "content": content})

    update = ConversationState(tool_rounds=state.get("tool_rounds", 0) + 1)
    days = state.get("asked_days")
    tells_days = days is not None and bool(days["summaries"] or days["said"])
    in_one_part = (asked_compose or compose) == "single" or bool(turn.input.get("budget"))
    if in_one_part or (len(calls) == 1 and not tells_days):
        within_s = allowance(turn, state).besides_answer_s
        results = await executor.run(calls, turn, on_event, within_s=within_s)
        return {**update, "messages": [AIMessage("", tool_calls=calls), *results]}

    async def say(messages: list[AnyMessage]) -> str:
        so_far = ConversationState({**state, **update, "messages": messages})
        spoken = await answer(turn, so_far, write, models=models, tools=None, estimators=estimators)
        write({"status": "token", "content": _BETWEEN_PARTS})
        update["answer"] = spoken["answer"] + _BETWEEN_PARTS
        update["usage"] = spoken["usage"]
        update["timings"] = {**spoken["timings"], **update.get("timings", {})}
        return spoken["messages"][-1].text

    messages = await compose_answer(
        executor, calls, turn, on_event, say=say, language=language, begin_at_once=tells_days
    )
    return {**update, "messages": messages}
