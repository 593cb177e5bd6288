"""generate: one prompt, one streamed call of the model."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from services.context.assemble import Prompt, assemble, without_tools
from services.context.request_budget import LEAST_ANSWER, REQUEST_BUDGET, allowance, fit, with_measures
from services.context.sources.knowledge import NAME as KNOWLEDGE
from services.context.sources.knowledge import USUAL, PromptStrategy
from services.llm.calls import Bounds, answer_within, finish_of
from services.llm.chat_models import ChatModels, ModelUsage
from services.llm.giving_way import LEFT_OUT
from services.llm.streams.text import CallPiece, Reasoning
from services.llm.token_estimates import TokenEstimators
from services.platform.patience import beside_the_loop
from services.text.tokenizer import indexed_text
from services.tools.offered import OfferedTools
from services.tools.registry import ToolRegistry
from state.budget import BudgetMeasure
from state.conversation import ConversationState, TokenUsage
from state.events import CALL
from state.section import Section
from state.turn import OpenTurn

MOST_TOOL_ROUNDS = 5
"""Tool rounds after which the model is offered no tools, so that it answers."""

CLIENT_TOOLS = "client_tools"
"""The entry in `degraded` of a turn whose model could not be offered the client's tools."""

_MOST_ON_THE_LOOP = 1_000_000
"""Minimum characters of images for which a thread assembles the prompt, because its digest covers them all."""

Write = Callable[[dict[str, Any]], None]
"""Sends an event to the turn's followers."""


async def generate(
    state: ConversationState,
    runtime: Runtime[OpenTurn],
    *,
    models: ChatModels,
    tools: ToolRegistry,
    estimators: TokenEstimators,
    handlers: Mapping[str, PromptStrategy],
) -> ConversationState:
    """Stream the next part of the answer: all of it, or what the model says before it calls tools.

    The graph has this node twice: as `generate_rag`, and with `handlers` as `generate_kb`, which uses the prompt
    strategy of the routed knowledge base.
    """
    turn = runtime.context
    strategy = handlers.get(state.get("handler") or "", USUAL)
    takes = models.takes_tools(turn.model)
    own: ToolRegistry | None = None
    if takes and strategy.offers_tools and state.get("tool_rounds", 0) < MOST_TOOL_ROUNDS:
        own = (await tools.of_user(turn.tenant_id, turn.user_id)).with_features(
            state["features"], temporary=not turn.stored, expert=turn.expert
        )
    return await answer(
        turn,
        state,
        runtime.stream_writer,
        models=models,
        tools=OfferedTools(own, turn.input.get("client_tools") if takes else None),
        estimators=estimators,
        strategy=strategy,
    )


async def answer(
    turn: OpenTurn,
    state: ConversationState,
    write: Write,
    *,
    models: ChatModels,
    tools: OfferedTools | None,
    estimators: TokenEstimators,
    strategy: PromptStrategy = USUAL,
) -> ConversationState:
    """Assemble the prompt, stream one answer of the model, and return what it adds to the turn.

    `tools` are offered to the model; `strategy` says how passages are shown. What is left of the request's budget
    limits the prompt, the answer's length and its time; an answer that has begun then ends as it is.

    Raises:
        ModelFailed: no model answered, or the answer broke off.
        RequestBudgetExceeded: the request's budget ended before any text of the answer.
    """
    tokens = estimators.of(turn.model or "")
    after = state.get("messages", [])
    so_far = state.get("answer", "")

    def assembled(with_tools: bool, budget: int) -> Prompt:
        return assemble(
            _sections(state, strategy),
            tokens,
            budget=budget,
            epoch=state["epoch"],
            features=state["features"],
            message=indexed_text(turn.speaker, turn.message),
            images=turn.images,
            tools=tools.described if tools and with_tools else "",
            after=after,
        )

    theirs = tools.told if tools else frozenset()
    left = allowance(turn, state)
    fitted = await beside_the_loop(
        partial(
            fit,
            assembled,
            left,
            tokens,
            after,
            budget=state["context_budget"],
            tools=bool(tools),
            besides=tokens.count(tools.described_theirs) if tools and theirs and left.tokens is not None else 0,
        ),
        characters=_characters_of_images(turn, state),
        most=_MOST_ON_THE_LOOP,
    )
    prompt = fitted.prompt
    if (limit := left.spent or (None if fitted.fits else "tokens")) is not None:
        if not so_far.strip():
            raise left.exceeded(limit, needed=None if fitted.fits else fitted.size + LEAST_ANSWER)
        return _update(turn, state, prompt, AIMessage("", response_metadata=_CUT_OFF), "", measures=["cut_off"])
    timings: dict[str, float] = {}

    offered = tools if tools and fitted.with_tools else OfferedTools(None)
    coming = offered.calls_of(turn.turn_id, len(state.get("context_report", {}).get("rounds", [])))

    def on_text(piece: str) -> None:
        if isinstance(piece, CallPiece):
            write({"status": CALL, "content": coming.event(piece)})
            return
        if isinstance(piece, Reasoning):
            write({"status": "reasoning", "content": str(piece)})
            return
        if not so_far:
            timings.setdefault("first_token_ms", round((perf_counter() - turn.begun) * 1000, 1))
        write({"status": "token", "content": piece})

    bounded = await answer_within(
        partial(
            models.answer,
            offered.as_sent(prompt.messages) if turn.input.get("client_tools") else prompt.messages,
            tools=offered.for_model,
            tool_options=offered.options,
            told_calls=offered.told,
        ),
        Bounds(left.seconds, fitted.answer_tokens, fitted.size),
        tokens,
        on_text=on_text,
        model=turn.model or models.default_model,
        sampling=turn.input.get("sampling"),
    )
    reply, text = offered.as_called(bounded.message), bounded.text
    if bounded.ended_by == "model" and finish_of(reply) == "stop":
        coming.check(reply.tool_calls)
    if bounded.ended_by != "model" and not reply.tool_calls and not (so_far + text).strip():
        raise left.exceeded(bounded.ended_by)
    if offered and not models.takes_tools(turn.model):  # the model has just refused them
        prompt = without_tools(prompt, tokens)
    used = ModelUsage.of(reply)
    # The tokens of images and tool calls differ between providers; those of an answer cut short may be estimates.
    plain = not prompt.images and not after and not theirs
    if plain and bounded.ended_by == "model" and not used.estimated:
        tokens.learn(prompt.texts, prompt.overhead, used.input_tokens, tools=prompt.tools)
    update = _update(turn, state, prompt, reply, text, measures=[*fitted.measures, *_ENDED_BY[bounded.ended_by]])
    if turn.input.get("client_tools") and (not theirs or not models.takes_tools(turn.model)):
        update["degraded"] = [*update.get("degraded", []), CLIENT_TOOLS]
    return {**update, "usage": _add(state.get("usage"), used), "timings": timings}


def _update(
    turn: OpenTurn,
    state: ConversationState,
    prompt: Prompt,
    reply: AIMessage,
    text: str,
    *,
    measures: Sequence[BudgetMeasure],
) -> ConversationState:
    """Return what a message of the model adds to the turn; `measures` kept it within the request's budget."""
    report = prompt.report
    if rounds := state.get("context_report", {}).get("rounds"):
        report = {**report, "rounds": rounds}
    if (finish := finish_of(reply)) != "stop":
        report = {**report, "finish": finish}
    update = ConversationState(
        messages=[reply],
        answer=state.get("answer", "") + text,
        prompt_sections=prompt.sections,
        epoch=prompt.epoch,
    )
    if limits := turn.input.get("budget"):
        before = state.get("context_report", {}).get("request_budget")
        budget = with_measures(limits, before, measures)
        report = {**report, "request_budget": budget}
        if budget["measures"]:
            update["degraded"] = [REQUEST_BUDGET]
    if left_out := reply.response_metadata.get(LEFT_OUT):
        update["degraded"] = [*update.get("degraded", []), *left_out]
    update["context_report"] = report
    return update


def _characters_of_images(turn: OpenTurn, state: ConversationState) -> int:
    """Count the characters of the message's images, and of those in what the prompt shows of the conversation."""
    shown = (item.message.content for section in state["sections"] for item in section.items if item.message)
    parts = (part for content in shown if isinstance(content, list) for part in content if isinstance(part, dict))
    earlier = sum(len(part["image_url"]["url"]) for part in parts if part.get("type") == "image_url")
    return earlier + sum(map(len, turn.images))


def _sections(state: ConversationState, strategy: PromptStrategy) -> list[Section]:
    """Return the gathered sections with those inserted that are only known now."""
    passages = strategy.section(
        state.get("retrieval_results", []),
        instructions=state.get("kb_instructions", ""),
        language=state["prompt_language"],
    )
    return [passages if section.name == KNOWLEDGE else section for section in state["sections"]]


_CUT_OFF = {"finish_reason": "length"}
_ENDED_BY: Mapping[str, Sequence[BudgetMeasure]] = {
    "model": (),
    "tokens": ("shorter_answer",),
    "seconds": ("cut_off",),
}
_NOTHING = TokenUsage(input_tokens=0, output_tokens=0, total_tokens=0, cached_tokens=0, model_calls=0)


def _add(before: TokenUsage | None, call: ModelUsage) -> TokenUsage:
    so_far = before or _NOTHING
    usage = TokenUsage(
        input_tokens=so_far["input_tokens"] + call.input_tokens,
        output_tokens=so_far["output_tokens"] + call.output_tokens,
        total_tokens=so_far["total_tokens"] + call.input_tokens + call.output_tokens,
        cached_tokens=so_far["cached_tokens"] + call.cached_tokens,
        model_calls=so_far["model_calls"] + 1,
    )
    if call.estimated or so_far.get("estimated"):
        usage["estimated"] = True
    return usage
