"""Budget of one request: its limits, what is left of them, and the prompt that fits into that.

A prompt is fitted first by leaving its tools out, then with less context.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

from langchain_core.messages import AIMessage, AnyMessage

from services.context.assemble import Prompt
from services.errors import RequestBudgetExceeded
from services.llm.shorter_prompts import images_of
from services.llm.token_estimates import IMAGE_TOKENS, MESSAGE_OVERHEAD, TokenEstimator
from state.budget import BudgetMeasure, BudgetReport, RequestBudget
from state.conversation import ConversationState
from state.turn import OpenTurn

REQUEST_BUDGET = "request_budget"
"""The entry in `degraded` of a turn that its request's budget changed."""
LEAST_ANSWER = 16
"""Tokens below which no answer is asked for."""

_TOOLS_UNTIL = 0.5
"""Share of the seconds after which the model is offered no tools: the rest is for the answer."""
_OF_REST = 0.5
"""Share of the seconds left that tools, or the reading of memory, may take."""
_USUAL_ANSWER = 400
"""Tokens to keep free for the answer, by sending less context."""
_SHARE_OF_ANSWER = 0.25
"""Share of what is left that a small budget keeps for the answer."""

Assemble = Callable[[bool, int], Prompt]
"""Assembles the prompt, with or without tools, within a number of tokens that excludes the message."""


def within(asked: RequestBudget, usual: RequestBudget, most: RequestBudget) -> RequestBudget:
    """Return the limits of a turn: those asked for, else the usual ones, and none above `most`."""
    limits: RequestBudget = {**most, **usual, **asked}
    if "model_calls" in most:
        limits["model_calls"] = min(limits["model_calls"], most["model_calls"])
    if "seconds" in most:
        limits["seconds"] = min(limits["seconds"], most["seconds"])
    if "tokens" in most:
        limits["tokens"] = min(limits["tokens"], most["tokens"])
    return limits


@dataclass(frozen=True)
class Allowance:
    """Rest of a budget; None = no limit."""

    limits: RequestBudget
    model_calls: int | None = None
    seconds: float | None = None
    tokens: int | None = None

    @property
    def allows_tools(self) -> bool:
        """Whether the next call may use tools: another call and half of the seconds remain for the answer."""
        if self.model_calls is not None and self.model_calls < 2:  # noqa: PLR2004 — this call and the next
            return False
        return self.seconds is None or self.seconds >= self.limits["seconds"] * _TOOLS_UNTIL

    @property
    def besides_answer_s(self) -> float | None:
        """Seconds that anything but the model may take now; None = no limit."""
        return None if self.seconds is None else max(0.0, self.seconds * _OF_REST)

    @property
    def spent(self) -> str | None:
        """The limit that is used up, so that no model may be called again; None = no limit is, as far as is
        known."""
        if self.model_calls is not None and self.model_calls < 1:
            return "model_calls"
        if self.seconds is not None and self.seconds <= 0:
            return "seconds"
        return "tokens" if self.tokens is not None and self.tokens < LEAST_ANSWER else None

    def exceeded(self, limit: str, *, needed: int | None = None) -> RequestBudgetExceeded:
        """Return the error for a turn without any answer; `needed` = the least tokens it takes."""
        return RequestBudgetExceeded(limit, str(self.limits.get(limit)), needed)


def allowance(turn: OpenTurn, state: ConversationState) -> Allowance:
    """Return what a turn may still use."""
    limits = turn.input.get("budget") or RequestBudget()
    used = state.get("usage")
    calls, seconds, tokens = limits.get("model_calls"), limits.get("seconds"), limits.get("tokens")
    return Allowance(
        limits,
        None if calls is None else calls - (used["model_calls"] if used else 0),
        None if seconds is None else seconds - (perf_counter() - turn.begun),
        None if tokens is None else tokens - (used["total_tokens"] if used else 0),
    )


def with_measures(
    limits: RequestBudget, before: BudgetReport | None, measures: Sequence[BudgetMeasure]
) -> BudgetReport:
    """Return the report of a turn's budget with more measures."""
    earlier = before["measures"] if before else []
    return BudgetReport(limits=limits, measures=list(dict.fromkeys([*earlier, *measures])))


@dataclass(frozen=True)
class FittedPrompt:
    """A prompt, and what it leaves for the answer."""

    prompt: Prompt
    with_tools: bool
    size: int
    """Estimated tokens, those of tools included."""
    answer_tokens: int | None
    """Tokens left for the answer; None = no limit. Below `LEAST_ANSWER` it does not fit."""
    measures: list[BudgetMeasure]

    @property
    def fits(self) -> bool:
        """Whether there is room for an answer."""
        return self.answer_tokens is None or self.answer_tokens >= LEAST_ANSWER


def fit(
    assemble: Assemble,
    left: Allowance,
    tokens: TokenEstimator,
    after: Iterable[AnyMessage],
    *,
    budget: int,
    tools: bool,
    besides: int = 0,
) -> FittedPrompt:
    """Assemble the prompt within `budget` and within what is `left` of the request's budget.

    Tools are offered only if the rest suffices for two such prompts with their answers, because the model reads
    the prompt again together with the tools' results. `besides` are tokens of the request outside the prompt:
    those of the client's tools.
    """
    measures: list[BudgetMeasure] = []
    offered = tools and left.allows_tools
    prompt = assemble(offered, budget)
    said = _tokens_of(after, tokens) + besides
    size = _size(prompt) + said
    if left.tokens is not None:
        if offered and 2 * (size + _USUAL_ANSWER) > left.tokens:
            offered = False
            prompt = assemble(offered, budget)
            size = _size(prompt) + said
        room = min(_USUAL_ANSWER, max(LEAST_ANSWER, int(left.tokens * _SHARE_OF_ANSWER)))
        if size + room > left.tokens:
            fixed = said + prompt.report["tokens"]["message"]
            prompt = assemble(offered, max(0, left.tokens - room - fixed))
            if (smaller := _size(prompt) + said) < size:
                size = smaller
                measures.append("smaller_context")
    if tools and not offered:
        measures.insert(0, "no_tools")
    answer = None if left.tokens is None else left.tokens - size
    return FittedPrompt(prompt, offered, size, answer, measures)


def _size(prompt: Prompt) -> int:
    return sum(prompt.report["tokens"].values())


def _tokens_of(messages: Iterable[AnyMessage], tokens: TokenEstimator) -> int:
    """Estimate what the model and its tools have already said in the turn."""
    total = 0
    for message in messages:
        total += tokens.count(message.text) + MESSAGE_OVERHEAD + IMAGE_TOKENS * len(images_of(message))
        if isinstance(message, AIMessage):
            total += sum(tokens.count(f"{call['name']}{call['args']}") for call in message.tool_calls)
    return total
