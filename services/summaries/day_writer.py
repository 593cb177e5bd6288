"""Writes summaries of visits and days with the small model, or with rules if there is none."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Annotated

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from services.conversations.values import no_nul
from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from services.llm.token_estimates import count_tokens
from services.platform.threads import Result, beside_the_loop
from services.summaries import prompts
from services.summaries.prompts import Said
from services.summaries.writer import SummaryWriter, extract, title_from
from services.text.language import Language, language_of

VISIT_TOKENS = 300
DAY_TOKENS = 450
"""Largest summary, in tokens; one made by rules is cut to it."""
_SHORT_TOKENS = 120
"""Tokens kept of a visit that continues or is too short for a summary."""
_LONG = 20_000
"""Characters of messages from which a thread counts and cuts them."""


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(no_nul)]


class WrittenSummary(BaseModel):
    """A summary with its topics."""

    summary: _Text
    key_topics: list[Annotated[_Text, StringConstraints(max_length=80)]] = Field(min_length=1, max_length=5)


class DayWriter:
    """Writes the summary of a visit from its messages, and that of a day from its visits."""

    def __init__(self, models: ChatModels, parts: SummaryWriter, *, chunk_tokens: int) -> None:
        """Take the tokens of a transcript that one call of the model may hold."""
        self._models = models
        self._parts = parts
        self._chunk_tokens = chunk_tokens

    async def visit(self, messages: Sequence[Said], day: date) -> WrittenSummary:
        """The summary of a visit on a day. If it is too long for one call, earlier parts are summarised first.

        Raises:
            ModelFailed: the model did not answer.
            BadModelOutput: what it answered is no summary, twice.
        """
        if self._models.offline:
            return await by_rule(messages, most_tokens=VISIT_TOKENS)
        language, chunks = await _beside(messages, partial(self._chunks, messages))
        *earlier, last = chunks
        parts = [await self._parts.part(chunk) for chunk in earlier]
        asked = prompts.visit_summary(last, parts, language, day)
        return await self._ask(asked, VISIT_TOKENS)

    async def day(self, visits: Sequence[str], topics: Sequence[str]) -> WrittenSummary:
        """The summary of a day with several visits, from theirs; `topics` = the visits' own, in order.

        Raises:
            ModelFailed, BadModelOutput: as `visit`.
        """
        language = language_of(visits)
        if self._models.offline:
            text = extract(" ".join(visits), [], language, DAY_TOKENS)
            return WrittenSummary(summary=text, key_topics=list(dict.fromkeys(topics))[:5])
        asked = prompts.day_summary(visits, language)
        return await self._ask(asked, DAY_TOKENS)

    async def _ask(self, asked: Sequence[BaseMessage], most_tokens: int) -> WrittenSummary:
        return await ask_for(
            self._models,
            asked,
            lambda text: _checked(text, most_tokens),
            schema=WrittenSummary,
            purpose="day_summary",
        )

    def _chunks(self, messages: Sequence[Said]) -> tuple[Language, list[list[Said]]]:
        """Return the language of messages, and the messages in parts of which each fits into a call."""
        chunks: list[list[Said]] = [[]]
        size = 0
        for role, text in messages:
            shown = text if count_tokens(text) <= self._chunk_tokens else f"{text[: self._chunk_tokens]}…"
            tokens = count_tokens(shown)
            if chunks[-1] and size + tokens > self._chunk_tokens:
                chunks.append([])
                size = 0
            chunks[-1].append((role, shown))
            size += tokens
        return language_of(text for _, text in messages), chunks


async def by_rule(messages: Sequence[Said], *, most_tokens: int = _SHORT_TOKENS) -> WrittenSummary:
    """Return the user's own words in a visit, as many as fit."""
    return await _beside(messages, partial(_by_rule, messages, most_tokens))


async def _beside(messages: Sequence[Said], work: Callable[[], Result]) -> Result:
    """Do some work on messages; in a thread if they are long."""
    return await beside_the_loop(work, characters=sum(len(text) for _, text in messages), most=_LONG)


def _by_rule(messages: Sequence[Said], most_tokens: int) -> WrittenSummary:
    said = [text for role, text in messages if role == "user"] or [text for _, text in messages]
    language = language_of(said)
    # A visit without statements is described by its questions.
    text = extract("", messages, language, most_tokens) or extract(" ".join(said), [], language, most_tokens)
    return WrittenSummary(summary=text or title_from(messages), key_topics=[title_from(messages)])


def _checked(answer: str, most_tokens: int) -> WrittenSummary:
    written = json_answer(WrittenSummary, answer)
    if (tokens := count_tokens(written.summary)) > most_tokens:
        raise BadModelOutput(f"a summary of {tokens} tokens; at most {most_tokens} are accepted")
    return written
