"""Has summaries written: by the small model, or without one in the user's own words, as many as fit."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from services.conversations.messages import without_nul
from services.errors import BadModelOutput
from services.llm.chat_models import ChatModels
from services.llm.structured_output import ask_for
from services.llm.token_estimates import count_tokens
from services.summaries import prompts
from services.summaries.prompts import Said
from services.text.language import Language, language_of
from services.text.lexical import words
from services.text.sentences import sentences

_QUESTION = re.compile(r"[?？]\s*$|[吗呢]\s*$")
_LONGEST_TITLE = 40
_SURELY_OVER = 2
"""Largest ratio between tokens of sentences counted one by one and together."""


def extract(summary: str, messages: Sequence[Said], language: Language, most_tokens: int) -> str:
    """The user's statements, the old summary's first; beyond the limit the least informative are left out.

    Telling is a statement whose words are rare among all of them (inverse document frequency).
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
    seen = Counter(word for sentence in kept for word in set(words(sentence)))

    def telling(sentence: str) -> float:
        return sum(math.log(1 + len(kept) / seen[word]) for word in set(words(sentence)))

    joint = "" if language == "zh" else " "
    least_telling = sorted(kept, key=telling)
    sizes = [count_tokens(sentence) for sentence in least_telling]
    # Count all sentences together only near the limit: a long transcript has thousands.
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
    """The beginning of the user's first statement."""
    text = next((" ".join(text.split()) for role, text in messages if role == "user"), "…")
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _sentences(text: str) -> list[str]:
    return [stripped for found in sentences(text) if (stripped := found.text.strip())]


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
