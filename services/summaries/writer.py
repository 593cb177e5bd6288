"""Has summaries written: by the small model, or by rules where there is none."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from services.conversations.messages import without_nul
from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.llm.tokens import count_tokens
from services.summaries import prompts
from services.summaries.extractive import extract
from services.summaries.prompts import Said
from services.text.language import language_of


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
        return await ask_for(self._models, messages, self._checked)

    def _checked(self, answer: str) -> str:
        text = without_nul(answer).strip()
        if not text:
            raise BadModelOutput("an empty summary")
        if (tokens := count_tokens(text)) > self._most_tokens:
            raise BadModelOutput(f"a summary of {tokens} tokens; at most {self._most_tokens} are accepted")
        return text
