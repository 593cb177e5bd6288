"""Has summaries written: by the small model, or by rules where there is none."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.language import language_of
from services.llm.tokens import count_tokens
from services.summaries import prompts
from services.summaries.extractive import extract
from services.summaries.prompts import Said

_TRIES = 2


class SummaryWriter:
    """Turns messages and older summaries into one summary."""

    def __init__(self, models: ChatModels, *, most_tokens: int) -> None:
        """Take the model, and the length over which a summary is not accepted."""
        self._models = models
        self._most_tokens = most_tokens

    async def increment(self, summary: str, messages: Sequence[Said]) -> str:
        """The old summary with what was said since; with no old one, the first.

        Raises:
            ModelFailed: the model did not answer.
            BadModelOutput: what it answered is no summary.
        """
        language = language_of(text for _, text in messages)
        if self._models.offline:
            return extract(summary, messages, language, self._most_tokens)
        if not summary:
            return await self._ask(prompts.first_summary(messages, language))
        return await self._ask(prompts.incremented_summary(summary, messages, language))

    async def part(self, messages: Sequence[Said]) -> str:
        """The summary of a stretch of a long conversation.

        Raises:
            ModelFailed, BadModelOutput: as `increment`.
        """
        language = language_of(text for _, text in messages)
        if self._models.offline:
            return extract("", messages, language, self._most_tokens)
        return await self._ask(prompts.part_summary(messages, language))

    async def whole(self, parts: Sequence[str], messages: Sequence[Said]) -> str:
        """One summary of the summaries of all parts, and of the messages behind them.

        Raises:
            ModelFailed, BadModelOutput: as `increment`.
        """
        language = language_of([*parts, *(text for _, text in messages)])
        if self._models.offline:
            return extract(" ".join(parts), messages, language, self._most_tokens)
        return await self._ask(prompts.whole_summary(parts, messages, language))

    async def _ask(self, messages: list[BaseMessage]) -> str:
        for _ in range(_TRIES):
            text = (await self._models.complete(messages)).strip()
            if text and count_tokens(text) <= self._most_tokens:
                return text
        raise BadModelOutput(f"a summary of {count_tokens(text)} tokens; 1 to {self._most_tokens} are accepted")
