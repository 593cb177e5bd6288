"""Ask the model with the prompt of a turn, and pass on what it says while it says it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from services.context.parts import PARTS
from services.context.prompt import Ingredients, Prompt, build_prompt
from services.context.strategies import USUAL, PromptStrategy
from services.llm.chat_models import ChatModels, ModelUsage
from services.llm.token_estimates import TokenEstimator, TokenEstimators
from services.tools.registry import ToolRegistry
from state.conversation import ConversationState, TokenUsage

Write = Callable[[dict[str, Any]], None]
"""Sends an event to whoever follows the turn."""


async def speak(
    state: ConversationState,
    write: Write,
    *,
    models: ChatModels,
    tools: ToolRegistry | None,
    estimators: TokenEstimators,
    strategy: PromptStrategy = USUAL,
) -> ConversationState:
    """Stream one answer of the model, and return what it adds to the turn.

    `tools` are those that it is offered; `strategy` says how passages are shown.

    Raises:
        ModelFailed: no model answered, or the answer broke off.
    """
    tokens = estimators.of(state.get("model") or "")
    prompt = _prompt(state, tools.described if tools else "", tokens, strategy)
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
        tools=tools.for_model if tools else (),
    )
    used = ModelUsage.of(reply)
    # What images and calls of tools cost differs from provider to provider.
    if not prompt.images and not state.get("messages"):
        tokens.learn(prompt.texts, prompt.overhead, used.input_tokens)
    return {
        "messages": [reply],
        "answer": state.get("answer", "") + "".join(pieces),
        "usage": _add(state.get("usage"), used),
        "context_report": prompt.report,
        "epoch": prompt.epoch,
        "timings": timings,
    }


def _prompt(state: ConversationState, tools: str, tokens: TokenEstimator, strategy: PromptStrategy) -> Prompt:
    parts = Ingredients(
        budget=state["context_budget"],
        system_prompt=state["system_prompt"],
        tools=tools,
        epoch=state["epoch"],
        history=state.get("history", []),
        passages=state.get("retrieval_results", []),
        strategy=strategy,
        kb_instructions=state.get("kb_instructions", ""),
        asked_days=state.get("asked_days"),
        episodes=state.get("episodic_memory", []),
        recall=state.get("recall", {}),
        parts=state.get("parts", PARTS),
        message=state["message"],
        images=state.get("images", []),
        core_memory=state["epoch"]["core_memory"] if state.get("core_memory") is not None else {},
        core_memory_changes=state.get("core_memory_changes", {}),
        persona_card=state.get("persona_card", ""),
        tone=state.get("tone"),
        time_note=state.get("time_note", ""),
        after=state.get("messages", []),
    )
    return build_prompt(parts, tokens)


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
