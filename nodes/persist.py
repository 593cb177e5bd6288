"""persist: stores the answer and everything that belongs to it, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime

from nodes.history import change_request, planned_forms
from services.conversations.turn import TurnOutcome, TurnStatus
from services.conversations.turns import Turns
from services.memory.changes import Changes
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import Scope
from services.memory.planning.own_turn import of_own_turn
from services.memory.recall.working_sets import WorkingSets
from services.platform.patience import beside_the_loop
from services.promises.promises import Promises
from services.tools.actor import MEMORY_TOOLS, foreign_origin, reads_days, reads_note
from state.conversation import ConversationState, section_named
from state.memory import MemoryChange, PlainForm, PlannedChange
from state.turn import OpenTurn

_LONG = 2_000
"""Minimum characters of a turn for which a thread computes what is stored."""


async def persist(
    state: ConversationState,
    runtime: Runtime[OpenTurn],
    *,
    turns: Turns,
    episodes: bool,
    changes: Changes,
    promises: Promises,
    working_sets: WorkingSets | None = None,
) -> ConversationState:
    """Store the complete answer, end the turn, and queue the jobs that it causes; nothing for an unstored turn.

    With `episodes`, the turn becomes an episode, which can be recalled from the next turn on. What was said is
    filed in the background. The `working_sets` take in what the turn adds. Plain forms of the message, and a
    reminder that it asks for, are carried out if a model with tools has answered and called no memory tool.
    """
    turn = runtime.context
    # An answer that says that there is no record is not worth remembering.
    asks_model = not state.get("told_without_model")
    asked_days = state.get("asked_days")
    total_ms = round((perf_counter() - turn.begun) * 1000, 1)
    if not turn.stored:
        return {"timings": {"total_ms": total_ms}}
    made, planned = await changes_of_turn(turn, state, changes, state["answer"])
    made = [*turn.told, *made]
    if (asked := state.get("plain_promise")) and not _promised(state):
        made.append(await promises.make_plain(turn, asked))
    timed: ConversationState = {**state, "timings": {**state.get("timings", {}), "total_ms": total_ms}}
    outcome = await beside_the_loop(
        partial(outcome_of, turn, timed, "completed", state["answer"], made, planned),
        characters=len(turn.message) + len(state["answer"]),
        most=_LONG,
    )
    question = section_named(state.get("sections", []), "open_question")
    outcome = replace(
        outcome,
        prompt=state.get("prompt_sections"),
        epoch=state.get("epoch"),
        episode=episodes and asks_model,
        summary_due=state.get("summary_due", False),
        context_filled=state.get("context_filled", 0.0),
        files=asks_model and "memory_filing" in state["features"],
        asked=UUID(question.data["asks"]) if question and question.data["asks"] else None,
        visits_to_summarise=[UUID(each) for each in asked_days["to_summarise"]] if asked_days else [],
    )
    origin = await turns.end(turn, outcome)
    if working_sets is not None:
        working_sets.follow(Scope.of(Owner.of_turn(turn)))
    return {
        "memory_changes": [*made, *(each.change for each in planned if each.is_told)],
        # Nobody knows what another agent's answer repeats, so all of it counts as foreign.
        "answer_origin": None if turn.is_heard else origin,
        "timings": {"total_ms": total_ms},
    }


def outcome_of(
    turn: OpenTurn,
    state: ConversationState,
    status: TurnStatus,
    answer: str,
    made: Sequence[MemoryChange],
    planned: Sequence[PlannedChange],
) -> TurnOutcome:
    """Return how a turn ended, complete or not, as far as its nodes have written it."""
    report = state.get("context_report")
    return TurnOutcome(
        status=status,
        answer=answer,
        route_decision=state.get("route_decision"),
        usage=_usage(state),
        timings=state.get("timings"),
        degraded=state.get("degraded", []),
        context_report=report,
        recalled=report.get("recall", {}).get("shown", []) if report else [],
        origin=foreign_origin(turn, state),
        reads_days=reads_days(state),
        reads_note=reads_note(state),
        memory=planned,
        made=made,
    )


def _usage(state: ConversationState) -> Mapping[str, Any] | None:
    """Return the usage of all parts of a turn."""
    earlier = [each["usage"] for each in state.get("context_report", {}).get("rounds", [])]
    parts: list[Mapping[str, Any]] = [*earlier, *([state["usage"]] if "usage" in state else [])]
    if len(parts) <= 1:
        return parts[0] if parts else None
    names = dict.fromkeys(name for each in parts for name in each)
    summed = {name: sum(int(each.get(name, 0)) for each in parts) for name in names if name != "estimated"}
    return {**summed, **({"estimated": True} if "estimated" in names else {})}


async def changes_of_turn(
    turn: OpenTurn, state: ConversationState, changes: Changes, answer: str
) -> tuple[list[MemoryChange], list[PlannedChange]]:
    """Return the changes of memory that tools have made, and those that the turn makes when it ends.

    `answer` is the answer so far.
    """
    operations = turn.input.get("operations", [])
    found = (
        await changes.made(change_request(turn), operations) if operations or _called(state) & MEMORY_TOOLS else []
    )
    planned = list(state.get("memory_plan", []))
    if not planned:
        planned = await planned_forms(_forms_left(state, acted=bool(found)), turn, changes)
    history, language = state.get("history", []), state.get("prompt_language", "en")
    said = [each["content"] for each in history if each["role"] == "user" and each.get("off_record")]
    return [change for change, _ in found], of_own_turn(turn, answer, planned, found, said, language)


def _forms_left(state: ConversationState, *, acted: bool) -> list[PlainForm]:
    """Return the plain forms that the model has left to the service: all of them if it called no memory tool.

    Another agent has `acted` if it has changed memory. A form that leaves a message out is carried out unless the
    model did so, because that is cheap and shown.
    """
    forms, called = state.get("plain_forms", []), _called(state)
    if called.isdisjoint(MEMORY_TOOLS) and not acted:
        return forms
    return [each for each in forms if each.kind in {"leave_out", "off_record"} and "leave_out" not in called]


def _promised(state: ConversationState) -> bool:
    """Return whether the model has made or moved a promise; listing promises does not count."""
    messages = state.get("messages", [])
    done = {each.tool_call_id for each in messages if isinstance(each, ToolMessage) and each.status == "success"}
    calls = [call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    return any(each["name"] == "promise" and each["args"].get("when") and each["id"] in done for each in calls)


def _called(state: ConversationState) -> set[str]:
    """Return the names of the tools that the model called."""
    answers = [each for each in state.get("messages", []) if isinstance(each, AIMessage)]
    return {call["name"] for each in answers for call in each.tool_calls}
