"""generate: one prompt, one streamed call of the model."""

from datetime import UTC, datetime

from langgraph.runtime import Runtime

from services.context.prompt import ContextBudget, build_prompt
from services.llm.chat_models import ChatModels, ModelUsage
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState, TokenUsage

MOST_TOOL_ROUNDS = 5
"""After so many rounds of tools the model is offered none, so that it answers."""


async def generate(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    models: ChatModels,
    tools: ToolRegistry,
    budget: ContextBudget,
) -> ConversationState:
    """Stream the answer's next piece: all of it, or what the model says before it asks for tools."""
    prompt = build_prompt(
        budget=budget,
        system_prompt=state["system_prompt"],
        history=state.get("history", []),
        history_dropped=state.get("history_dropped", 0),
        passages=state.get("retrieval_results", []),
        message=state["message"],
        images=state.get("images", []),
        after=state.get("messages", []),
    )
    write = runtime.stream_writer
    pieces: list[str] = []
    timings: dict[str, float] = {}

    def on_text(text: str) -> None:
        if not pieces and not state.get("answer"):
            timings["first_token_ms"] = round((datetime.now(UTC) - state["now"]).total_seconds() * 1000, 1)
        pieces.append(text)
        write({"status": "token", "content": text})

    reply = await models.answer(
        prompt.messages,
        on_text=on_text,
        model=state.get("model"),
        tools=tools.for_model if state.get("tool_rounds", 0) < MOST_TOOL_ROUNDS else (),
    )
    return {
        "messages": [reply],
        "answer": state.get("answer", "") + "".join(pieces),
        "usage": _add(state.get("usage"), ModelUsage.of(reply)),
        "context_report": prompt.report,
        "timings": timings,
    }


_NOTHING = TokenUsage(input_tokens=0, output_tokens=0, total_tokens=0, cached_tokens=0, model_calls=0)


def _add(before: TokenUsage | None, call: ModelUsage) -> TokenUsage:
    so_far = before or _NOTHING
    return TokenUsage(
        input_tokens=so_far["input_tokens"] + call.input_tokens,
        output_tokens=so_far["output_tokens"] + call.output_tokens,
        total_tokens=so_far["total_tokens"] + call.input_tokens + call.output_tokens,
        cached_tokens=so_far["cached_tokens"] + call.cached_tokens,
        model_calls=so_far["model_calls"] + 1,
    )
