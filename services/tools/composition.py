"""Compose an answer from results that arrive one after the other."""

from collections.abc import Awaitable, Callable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage

from services.text.language import Language
from services.tools.executor import OnEvent, ToolExecutor
from state.context import TurnContext

Say = Callable[[list[AnyMessage]], Awaitable[str]]
"""Lets the model continue these messages, and returns what it says."""

_BEGIN = {
    "en": "Begin your answer now, shortly, with what you have. These are still under way: {pending}. "
    "Do not speak of them yet, not even that they are missing: you will go on when they are there.",
    "zh": "现在就用已有的内容开始回答，要简短。这些结果还没有返回：{pending}。先不要提它们，也不要说还缺什么："
    "等它们到了你再接着说。",
}
_GO_ON = {
    "en": "Go on with the answer that you have begun, with the results that have come since. What you have said "
    "is shown to the user already: do not repeat it, and do not greet again.",
    "zh": "请用新返回的结果接着你已经开始的回答往下说。前面的内容用户已经看到：不要重复，也不要再打招呼。",
}


async def compose(
    executor: ToolExecutor,
    calls: Sequence[ToolCall],
    context: TurnContext,
    on_event: OnEvent,
    *,
    say: Say,
    language: Language,
    begin_at_once: bool = False,
) -> list[AnyMessage]:
    """Run the calls, and let the model speak about the first results while others still run.

    With `begin_at_once` it has something to say before any of them: what the prompt tells answers a part.

    Returns:
        What was called, what came of it and what was said, in the order in which it happened. The last results
        have not been spoken of.
    """
    waiting = {call["id"] or "": call for call in calls}
    messages: list[AnyMessage] = []
    said = ""
    async with executor.running(calls, context, on_event) as running:
        if begin_at_once:
            said = await say([SystemMessage(_BEGIN[language].format(pending=_listed(waiting)))])
        while True:
            results = await running.more()
            messages += [_called(said, results, waiting), *results]
            if said:
                messages.append(SystemMessage(_GO_ON[language]))
            if not running.left:
                return messages
            begin = SystemMessage(_BEGIN[language].format(pending=_listed(waiting)))
            said = await say([*messages, begin])


def _called(said: str, results: Sequence[ToolMessage], waiting: dict[str, ToolCall]) -> AIMessage:
    """The finished calls, as if the model had just made them after what it said."""
    return AIMessage(said, tool_calls=[waiting.pop(result.tool_call_id) for result in results])


def _listed(calls: dict[str, ToolCall]) -> str:
    return ", ".join(f"{call['name']}({', '.join(map(str, call['args'].values()))})" for call in calls.values())
