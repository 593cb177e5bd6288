"""pause: ends a part of a turn in calls of the client's tools, and keeps the turn until their results come."""

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from nodes.persist import outcome_of
from services.conversations.paused_turns import PausedTurns
from services.conversations.values import MAX_IMAGES_BYTES
from services.llm.shorter_prompts import with_newest_images
from services.validation import without_nul
from state.client_tools import (
    RESULTS,
    ClientCall,
    ClientResult,
    KeptResult,
    KeptRound,
    call_id,
    is_clients,
    open_calls,
    result_message,
    said_in,
    unmarked,
)
from state.conversation import ConversationState, each_once
from state.turn import OpenTurn


async def pause(
    state: ConversationState, runtime: Runtime[OpenTurn], *, paused_turns: PausedTurns
) -> ConversationState:
    """Note the calls in the turn's record, with all that its next part needs; nothing for an unstored turn."""
    turn = runtime.context
    report = state["context_report"]
    rounds = report.get("rounds", [])
    part = len(rounds)
    kept = KeptRound(
        text=state["answer"][len(said_in(rounds)) :],
        calls=[
            ClientCall(
                id=call_id(turn.turn_id, part, place),
                name=unmarked(call["name"]),
                arguments=_storable(call["args"]),
            )
            for place, call in enumerate(open_calls(state["messages"]))
        ],
        results=[],
        own_tools=_own_tools(state),
        usage=state["usage"],
    )
    total_ms = round((perf_counter() - turn.begun) * 1000, 1)
    update = ConversationState(
        context_report={**report, "rounds": [*rounds, kept]}, timings={"total_ms": total_ms}
    )
    if turn.stored:
        paused: ConversationState = {**state, "context_report": update["context_report"]}
        del paused["usage"]  # is the usage of this part, which is noted
        outcome = outcome_of(turn, paused, "paused", "", [], [])
        await paused_turns.pause(turn, paused, replace(outcome, prompt=state.get("prompt_sections")))
    return update


def _storable(value: Any) -> Any:
    """Return arguments without NUL, the one character that no column accepts."""
    if isinstance(value, str):
        return without_nul(value)
    if isinstance(value, list):
        return [_storable(each) for each in value]
    return {without_nul(key): _storable(each) for key, each in value.items()} if isinstance(value, dict) else value


def _own_tools(state: ConversationState) -> list[str]:
    """Return the names of the service's tools that ran in this part of the turn."""
    names: list[str] = []
    for each in reversed(state["messages"]):
        if isinstance(each, ToolMessage):
            if is_clients(each):
                break
            names.append(each.name or "")
    return names[::-1]


def resumed(
    state: ConversationState, results: Mapping[int, ClientResult], *, keeps_content: bool
) -> ConversationState:
    """Return the state with which a turn continues, from the results by the places of their calls."""
    rounds = state["context_report"].get("rounds", [])
    calls = open_calls(state["messages"])
    given = list(results.values())
    messages = [
        result_message({**results[place], "id": call["id"] or ""}, unmarked(call["name"]))
        for place, call in enumerate(calls)
    ]
    kept = [
        KeptResult(id=each["id"], name=unmarked(call["name"]), characters=each.get("of") or len(each["content"]))
        for call, each in ((call, results[place]) for place, call in enumerate(calls))
    ]
    if keeps_content:
        kept = [{**each, "content": results[place]["content"]} for place, each in enumerate(kept)]
    done: list[KeptRound] = [*rounds[:-1], {**rounds[-1], "results": kept}]
    return {
        **state,
        "messages": with_newest_images([*state["messages"], *messages], MAX_IMAGES_BYTES),
        "answer": said_in(done),
        "tool_rounds": 0,
        "context_report": {**state["context_report"], "rounds": done},
        "degraded": each_once(state.get("degraded", []), [RESULTS] if any("of" in each for each in given) else []),
    }
