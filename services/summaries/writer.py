"""Writes summaries: with the small model, or without one from as many of the user's own words as fit."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Annotated

from langchain_core.messages import BaseMessage
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for, json_answer
from services.llm.token_estimates import count_tokens
from services.platform.patience import Result, beside_the_loop
from services.summaries import prompts
from services.summaries.prompts import Said, SummaryKind
from services.text.language import Language, language_of, sentences
from services.text.tokenizer import terms
from services.validation import no_nul, without_nul

_QUESTION = re.compile(r"[?？]\s*$|[吗呢]\s*$")
_LONGEST_TITLE = 40
_SURELY_OVER = 2
"""Maximum ratio between the tokens of sentences counted one by one and counted together."""


def extract(summary: str, messages: Sequence[Said], language: Language, most_tokens: int) -> str:
    """Return the user's statements, those of the old summary first; over the limit the least informative are left
    out.

    A statement is informative if its words are rare among all statements (inverse document frequency).
    """
    old = _sentences(summary)
    new = [
        sentence
        for role, text in messages
        if role == "user"
        for sentence in _sentences(text)
        if not _QUESTION.search(sentence)
    ]
    kept = list(dict.fromkeys([*old, *new]))
    seen = Counter(word for sentence in kept for word in set(terms(sentence)))

    def telling(sentence: str) -> float:
        return sum(math.log(1 + len(kept) / seen[word]) for word in set(terms(sentence)))

    joint = "" if language == "zh" else " "
    least_telling = sorted(kept, key=telling)
    sizes = [count_tokens(sentence) for sentence in least_telling]
    # Only near the limit are all sentences counted together: a long transcript has thousands.
    first, left = 0, sum(sizes)
    while left > _SURELY_OVER * most_tokens and first < len(sizes):
        left -= sizes[first]
        first += 1
    dropped = set(least_telling[:first])
    kept = [sentence for sentence in kept if sentence not in dropped]
    for sentence in least_telling[first:]:
        if count_tokens(joint.join(kept)) <= most_tokens:
            break
        kept.remove(sentence)
    return joint.join(kept)


def title_from(messages: Sequence[Said]) -> str:
    """Return the beginning of the user's first statement."""
    text = next((" ".join(text.split()) for role, text in messages if role == "user"), "…")
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _sentences(text: str) -> list[str]:
    return [stripped for found in sentences(text) if (stripped := found.text.strip())]


VISIT_TOKENS = 300
DAY_TOKENS = 450
"""Maximum tokens of a summary; one made by rules is cut to them."""
_SHORT_TOKENS = 120
"""Maximum tokens that stand for a visit that continues or is too short for a summary."""
_LONG = 20_000
"""Minimum characters of messages for which a thread counts and cuts them."""


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(no_nul)]
"""Text by a model, without blanks around it."""


class WrittenSummary(BaseModel):
    """A summary with its topics."""

    summary: Text
    key_topics: list[Annotated[Text, StringConstraints(max_length=80)]] = Field(min_length=1, max_length=5)


class SummaryWriter:
    """Turns messages and older summaries into one summary: of a conversation, a visit or a day.

    Every method raises `ModelFailed` if the model does not answer, and `BadModelOutput` if its answer is no
    summary, twice.
    """

    def __init__(self, models: ChatModels, *, most_tokens: int, chunk_tokens: int) -> None:
        """Take the model, the tokens of a conversation's summary, and the tokens that one call may hold."""
        self._models = models
        self._most_tokens = most_tokens
        self.chunk_tokens = chunk_tokens

    async def conversation(
        self, kind: SummaryKind, messages: Sequence[Said], earlier: Sequence[str] = (), *, days: Sequence[date]
    ) -> str:
        """Return the summary of a conversation or a part of it, from messages and the summaries before them.

        `days` are the local dates of the messages.
        """
        said = [text for _, text in messages]
        language = language_of(said if kind == "increment" else [*earlier, *said])
        if self._models.offline:
            return extract(" ".join(earlier), messages, language, self._most_tokens)
        asked = prompts.summary(kind, earlier, messages, language, days=days, most_tokens=self._most_tokens)
        return await ask_for(self._models, asked, self._plain)

    async def visit(self, messages: Sequence[Said], day: date) -> WrittenSummary:
        """Return the summary of a visit. If it is too long for one call, earlier parts are summarised first."""
        if self._models.offline:
            return await by_rule(messages, most_tokens=VISIT_TOKENS)
        language, chunks = await _beside(messages, partial(self._chunks, messages))
        *earlier, last = chunks
        parts = [await self.conversation("part", chunk, days=[day] * len(chunk)) for chunk in earlier]
        return await self._dated(prompts.visit_summary(last, parts, language, day), VISIT_TOKENS)

    async def day(self, visits: Sequence[str], topics: Sequence[str]) -> WrittenSummary:
        """Return the summary of a day, from those of its visits; `topics` = the topics of the visits, in order."""
        language = language_of(visits)
        if self._models.offline:
            text = extract(" ".join(visits), [], language, DAY_TOKENS)
            return WrittenSummary(summary=text, key_topics=list(dict.fromkeys(topics))[:5])
        return await self._dated(prompts.day_summary(visits, language), DAY_TOKENS)

    async def _dated(self, asked: Sequence[BaseMessage], most_tokens: int) -> WrittenSummary:
        def checked(answer: str) -> WrittenSummary:
            written = json_answer(WrittenSummary, answer)
            _check_length(written.summary, most_tokens)
            return written

        return await ask_for(self._models, asked, checked, schema=WrittenSummary, purpose="day_summary")

    def _plain(self, answer: str) -> str:
        text = without_nul(answer).strip()
        if not text:
            raise BadModelOutput("an empty summary")
        _check_length(text, self._most_tokens)
        return text

    def _chunks(self, messages: Sequence[Said]) -> tuple[Language, list[list[Said]]]:
        """Return the language of messages, and the messages in parts that each fit into a call."""
        chunks: list[list[Said]] = [[]]
        size = 0
        for role, text in messages:
            shown = text if count_tokens(text) <= self.chunk_tokens else f"{text[: self.chunk_tokens]}…"
            tokens = count_tokens(shown)
            if chunks[-1] and size + tokens > self.chunk_tokens:
                chunks.append([])
                size = 0
            chunks[-1].append((role, shown))
            size += tokens
        return language_of(text for _, text in messages), chunks


async def by_rule(messages: Sequence[Said], *, most_tokens: int = _SHORT_TOKENS) -> WrittenSummary:
    """Return as many of the user's own words in a visit as fit."""
    return await _beside(messages, partial(_by_rule, messages, most_tokens))


async def _beside(messages: Sequence[Said], work: Callable[[], Result]) -> Result:
    """Do some work on messages, in a thread if they are long."""
    return await beside_the_loop(work, characters=sum(len(text) for _, text in messages), most=_LONG)


def _by_rule(messages: Sequence[Said], most_tokens: int) -> WrittenSummary:
    said = [text for role, text in messages if role == "user"] or [text for _, text in messages]
    language = language_of(said)
    # A visit without statements is described by its questions.
    text = extract("", messages, language, most_tokens) or extract(" ".join(said), [], language, most_tokens)
    return WrittenSummary(summary=text or title_from(messages), key_topics=[title_from(messages)])


def _check_length(text: str, most_tokens: int) -> None:
    if (tokens := count_tokens(text)) > most_tokens:
        raise BadModelOutput(f"a summary of {tokens} tokens; at most {most_tokens} are accepted")
