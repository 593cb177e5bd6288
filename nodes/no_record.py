"""no_record: the answer to a question about days on which nothing was said; no model is asked."""

from time import perf_counter

from langgraph.runtime import Runtime

from services.context.assemble import empty_report
from services.context.sources.days import no_record as told
from services.text.language import language_of
from services.time_reference.local_days import local_day
from state.conversation import ConversationState, TokenUsage
from state.turn import OpenTurn


async def no_record(state: ConversationState, runtime: Runtime[OpenTurn]) -> ConversationState:
    """Say that there is no record of that time and which days have one, in the message's language."""
    turn = runtime.context
    reference, asked = state["time_reference"], state["asked_days"]
    assert reference is not None and asked is not None  # noqa: S101, PT018 — the edge leads here with both
    today = local_day(turn.now, turn.timezone)
    answer = told(reference, asked, today, language_of([turn.message]))
    first_token_ms = round((perf_counter() - turn.begun) * 1000, 1)
    runtime.stream_writer({"status": "token", "content": answer})
    return {**unasked(state, answer), "timings": {"first_token_ms": first_token_ms}}


def unasked(state: ConversationState, answer: str) -> ConversationState:
    """Return the state update of a turn whose answer comes from no model."""
    return {
        "answer": answer,
        "usage": TokenUsage(input_tokens=0, output_tokens=0, total_tokens=0, cached_tokens=0, model_calls=0),
        "context_report": empty_report(state["context_budget"], state["epoch"], state["features"]),
    }
