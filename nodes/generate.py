"""generate: one prompt, one streamed call of the model."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from langgraph.runtime import Runtime

from services.context.assemble import assemble, without_tools
from services.context.sources.knowledge import NAME as KNOWLEDGE
from services.context.sources.knowledge import USUAL, PromptStrategy
from services.llm.chat_models import ChatModels, ModelUsage
from services.llm.endpoint import finish_of
from services.llm.token_estimates import TokenEstimators
from services.tools.registry import ToolRegistry
from state.context import TurnContext
from state.conversation import ConversationState, TokenUsage
from state.section import Section

MOST_TOOL_ROUNDS = 5
"""Tool rounds after which the model is offered no tools, so that it answers."""

Write = Callable[[dict[str, Any]], None]
"""Sends an event to the turn's followers."""


async def generate(
    state: ConversationState,
    runtime: Runtime[TurnContext],
    *,
    models: ChatModels,
    tools: ToolRegistry,
    estimators: TokenEstimators,
    handlers: Mapping[str, PromptStrategy],
) -> ConversationState:
    """Stream the answer's next part: all of it, or what the model says before it calls tools.

    The graph has it twice: as `generate_rag`, and with `handlers` as `generate_kb`, which uses the prompt strategy
    of the routed knowledge base.
    """
    strategy = handlers.get(state.get("handler") or "", USUAL)
    offers = (
        strategy.offers_tools
        and state.get("tool_rounds", 0) < MOST_TOOL_ROUNDS
        and models.takes_tools(state.get("model"))
    )
    return await answer(
        state,
        runtime.stream_writer,
        models=models,
        tools=tools.with_features(state["features"], temporary=state.get("unstored", False)) if offers else None,
        estimators=estimators,
        strategy=strategy,
    )


async def answer(
    state: ConversationState,
    write: Write,
    *,
    models: ChatModels,
    tools: ToolRegistry | None,
    estimators: TokenEstimators,
    strategy: PromptStrategy = USUAL,
) -> ConversationState:
    """Assemble the prompt, stream one answer of the model, and return what it adds to the turn.

    `tools` are offered to the model; `strategy` says how passages are shown.

    Raises:
        ModelFailed: no model answered, or the answer broke off.
    """
    tokens = estimators.of(state.get("model") or "")
    prompt = assemble(
        _sections(state, strategy),
        tokens,
        budget=state["context_budget"],
        epoch=state["epoch"],
        features=state["features"],
        message=state["message"],
        images=state.get("images", []),
        tools=tools.described if tools else "",
        after=state.get("messages", []),
    )
    pieces: list[str] = []
    timings: dict[str, float] = {}

    def on_text(text: str) -> None:
        if not pieces and not state.get("answer"):
            timings["first_token_ms"] = round((perf_counter() - state["begun"]) * 1000, 1)
        pieces.append(text)
        write({"status": "token", "content": text})

    reply = await models.answer(
        prompt.messages,
        on_text=on_text,
        model=state.get("model"),
        tools=tools.for_model if tools else (),
        sampling=state.get("sampling"),
    )
    if tools and not models.takes_tools(state.get("model")):  # the model has just refused them
        prompt = without_tools(prompt, tokens)
    report = prompt.report
    if (finish := finish_of(reply)) != "stop":
        report = {**report, "finish": finish}
    used = ModelUsage.of(reply)
    # The tokens of images and tool calls differ between providers.
    if not prompt.images and not state.get("messages"):
        tokens.learn(prompt.texts, prompt.overhead, used.input_tokens, tools=prompt.tools)
    return {
        "messages": [reply],
        "answer": state.get("answer", "") + "".join(pieces),
        "usage": _add(state.get("usage"), used),
        "context_report": report,
        "prompt_sections": prompt.sections,
        "epoch": prompt.epoch,
        "timings": timings,
    }


def _sections(state: ConversationState, strategy: PromptStrategy) -> list[Section]:
    """Return the gathered sections with those inserted that are only known now."""
    passages = strategy.section(
        state.get("retrieval_results", []),
        instructions=state.get("kb_instructions", ""),
        language=state["prompt_language"],
    )
    return [passages if section.name == KNOWLEDGE else section for section in state["sections"]]


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
