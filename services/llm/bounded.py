"""One answer of the model within a number of tokens and seconds: what arrived in time is the answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import BaseTool

from services.errors import ModelFailed
from services.llm.chat_models import ChatModels
from services.llm.endpoint import finish_of
from services.llm.message_form import OnText
from services.llm.options import LENGTHS
from services.llm.streams.pieces import Said
from services.llm.token_estimates import TokenEstimator
from services.usage.ledger import Spent, note_spent
from state.conversation import Sampling

_OVER = 1.5
"""Multiple of the tokens at which an answer is cut off here, because its server ignores the limit."""
_OVER_TOKENS = 16
"""Tokens beyond that, because those of short answers are estimated badly."""


@dataclass(frozen=True)
class Bounds:
    """Limits of one answer; None = no limit."""

    seconds: float | None = None
    tokens: int | None = None
    prompt_tokens: int = 0
    """Estimated, for the usage of an answer that is cut off."""


@dataclass(frozen=True)
class BoundedAnswer:
    """An answer, and what ended it; its text is empty if the limit came first."""

    message: AIMessage
    ended_by: Literal["model", "seconds", "tokens"]


class _Counted:
    """Passes text on, and ends the call when it is much longer than it may be."""

    def __init__(self, on_text: OnText, tokens: TokenEstimator, most: int | None) -> None:
        self._on_text, self._tokens, self._most = on_text, tokens, most
        self.said = Said()
        self.too_long = False
        self.deadline = asyncio.timeout(None)

    def __call__(self, piece: str) -> None:
        if self.too_long:
            return
        self.said(piece)
        self._on_text(piece)
        if self._most is not None and self._tokens.count(self.said.text) > self._most * _OVER + _OVER_TOKENS:
            self.too_long = True
            self.deadline.reschedule(asyncio.get_running_loop().time())


async def answer_within(
    models: ChatModels,
    messages: Sequence[BaseMessage],
    bounds: Bounds,
    tokens: TokenEstimator,
    *,
    on_text: OnText,
    model: str | None,
    tools: Sequence[BaseTool],
    sampling: Sampling | None,
) -> BoundedAnswer:
    """Ask as `ChatModels.answer` does, and stop at the bounds.

    Tool calls of an answer that is cut off are dropped. Its usage is estimated, and so is that of an answer that
    broke off or was cancelled after its first text: the provider bills it, and the report of usage comes last.

    Raises:
        ModelFailed: no model answered, or the answer broke off.
    """
    heard = _Counted(on_text, tokens, bounds.tokens)
    ended_by: Literal["seconds", "tokens"] = "seconds"
    loop = asyncio.get_running_loop()
    heard.deadline = asyncio.timeout_at(None if bounds.seconds is None else loop.time() + bounds.seconds)

    def estimated() -> Spent:
        spent = Spent(0, bounds.prompt_tokens, tokens.count(heard.said.text))
        note_spent(model or models.default_model, spent)
        return spent

    try:
        async with heard.deadline:
            reply = await models.answer(
                messages,
                on_text=heard,
                model=model,
                tools=tools,
                sampling=sampling,
                most_tokens=bounds.tokens,
            )
        by_limit = bounds.tokens is not None and finish_of(reply) == "length"
        return BoundedAnswer(reply, "tokens" if by_limit and not _is_shorter(sampling, bounds) else "model")
    except TimeoutError:
        if not heard.deadline.expired():
            raise
        if heard.too_long:
            ended_by = "tokens"
    except asyncio.CancelledError:
        if heard.said.pieces:
            estimated()
        raise
    except ModelFailed as failure:
        if heard.said.pieces:
            estimated()
            raise
        # The model used all tokens up before it said anything.
        if bounds.tokens is None or failure.parameter not in LENGTHS or _is_shorter(sampling, bounds):
            raise
        ended_by = "tokens"
    return BoundedAnswer(_cut_off(heard.said.text, estimated()), ended_by)


def _is_shorter(sampling: Sampling | None, bounds: Bounds) -> bool:
    """Whether the caller has asked for a shorter answer anyway."""
    asked: Any = sampling or {}
    return any(asked[name] <= (bounds.tokens or 0) for name in LENGTHS if name in asked)


def _cut_off(text: str, spent: Spent) -> AIMessage:
    usage = UsageMetadata(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        total_tokens=spent.input_tokens + spent.output_tokens,
    )
    return AIMessage(text, usage_metadata=usage, response_metadata={"finish_reason": "length"})
