"""tools: runs the tools that the model called, all at once."""

from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from services.context.request_budget import allowance
from services.memory.reading.foreign_words import own_text
from services.memory.reading.plain_forms import says_yes
from services.memory.reading.trust import ForeignOrigins
from services.platform.patience import beside_the_loop
from services.text.language import sentences
from services.tools.actor import foreign_items, is_users, texts_read
from services.tools.executor import ToolExecutor
from state.client_tools import calls_of
from state.conversation import ConversationState
from state.turn import OpenTurn, Read

_LONG = 2_000
"""Minimum characters of what the user said that a thread reads."""


async def tools(
    state: ConversationState, runtime: Runtime[OpenTurn], *, executor: ToolExecutor, origins: ForeignOrigins
) -> ConversationState:
    """Run the tool calls of the model's last message, except those of the client's tools."""
    calls, _ = calls_of(state["messages"][-1])

    def on_event(status: str, content: dict[str, Any]) -> None:
        runtime.stream_writer({"status": status, "content": content})

    turn = replace(runtime.context, not_recalled=frozenset(state.get("not_recalled", ())))
    if executor.changes_memory(calls):
        turn = await _with_words(state, turn, origins)
    results = await executor.run(calls, turn, on_event, within_s=allowance(turn, state).besides_answer_s)
    return {"messages": list(results), "tool_rounds": state.get("tool_rounds", 0) + 1}


async def _with_words(state: ConversationState, turn: OpenTurn, origins: ForeignOrigins) -> OpenTurn:
    """Return the turn with what the user said, and with what the model read of others."""
    said = [*(each["content"] for each in state.get("history", []) if is_users(each))]
    said.append("" if turn.speaker else turn.message)
    found = await foreign_items(origins, turn, state)

    def with_texts() -> OpenTurn:
        foreign, remembered = texts_read(turn, state, found)
        words = [own_text(each) for each in said]
        return replace(turn, read=Read(words, foreign, remembered, _agreed(state, turn)))

    return await beside_the_loop(with_texts, characters=sum(map(len, said)), most=_LONG)


def _agreed(state: ConversationState, turn: OpenTurn) -> list[str]:
    """Return the messages of the conversation if the last answer ends in a question and the message says yes."""
    history = state.get("history", [])
    if not history or history[-1]["role"] != "assistant" or turn.speaker or not says_yes(turn.message):
        return []
    asked = sentences(history[-1]["content"])
    return [each["content"] for each in history] if asked and asked[-1].asks else []
