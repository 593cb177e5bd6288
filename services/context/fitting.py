"""Fits a prompt into the tokens that are left of a request's budget: without tools, then with less context."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage

from services.context.assemble import Prompt
from services.llm.token_estimates import MESSAGE_OVERHEAD, TokenEstimator
from services.usage.budgets import LEAST_ANSWER, Allowance
from state.budget import BudgetMeasure

_USUAL_ANSWER = 400
"""Tokens to keep free for the answer, by sending less context."""
_SHARE_OF_ANSWER = 0.25
"""The same for small budgets, as a share of what is left."""

Assemble = Callable[[bool, int], Prompt]
"""Assembles the prompt, with or without tools, within a number of tokens that excludes the message."""


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
) -> FittedPrompt:
    """Assemble the prompt within `budget` and what is `left` of the request's.

    Tools are offered only if what is left is enough for two such prompts with their answers, because the model
    reads the prompt again together with their results.
    """
    measures: list[BudgetMeasure] = []
    offered = tools and left.allows_tools
    prompt = assemble(offered, budget)
    said = _tokens_of(after, tokens)
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
        total += tokens.count(message.text) + MESSAGE_OVERHEAD
        if isinstance(message, AIMessage):
            total += sum(tokens.count(f"{call['name']}{call['args']}") for call in message.tool_calls)
    return total
