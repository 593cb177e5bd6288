"""Queries for a message: at most three, made by rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from services.text.cue_words import ASKS, ASKS_COUNSEL, QUOTES, SEEKS_ADVICE
from services.text.language import Language, language_of
from services.text.questions import asks, english_words, has_cue, refers_back
from services.text.tokenizer import indexed_text, informative_terms, is_weak

QueryKind = Literal["message", "context", "preference"]

_RECENT_MESSAGES = 6
_PREFERENCE_WEIGHT = 0.3
# A message that continues the talk, or asks for advice, says little about its subject: the talk before it does.
# Any other question stands for itself, and the talk only supplies what it leaves open.
_WEIGHTS_TALKING = (0.2, 1.0)
_WEIGHTS_OPEN = (0.5, 1.0)
_WEIGHTS_HINT = (1.0, 0.4)
_OPEN = 1
_SHORT = 3
_LONGEST, _END = 2_000, 500
"""Characters of a message that are sought, and how many of them are its end."""

_PREFERENCE: dict[Language, str] = {
    "en": "I like, love, prefer, my favourite: {}",
    "zh": "我喜欢，我最爱，我常：{}",
}


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message of the conversation at hand; the speaker as in what is indexed, or empty."""

    role: Literal["user", "assistant"]
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A text to search for, lexically and densely. Weights are relative to one another."""

    text: str
    weight: float
    kind: QueryKind


def make_queries(
    message: str, recent: Sequence[Utterance] = (), language: Language | None = None, *, speaker: str = ""
) -> list[RecallQuery]:
    """The queries for a message, the message itself the first; none for a message without a letter.

    A message that goes on talking instead of asking, asks for counsel, quotes, or does not name its
    subject, is sought together with what the user said last (`recent`, the newest last, without the
    message itself) and the answer it follows; so is, with less weight, one that names little and refers
    back.
    One that seeks advice or a choice is sought as a statement of what the user likes, too.
    """
    said = message.strip()
    if len(said) > _LONGEST:  # what a long message is about stands at its ends
        said = f"{said[: _LONGEST - _END]}\n{said[-_END:]}"
    if not any(character.isalnum() for character in said):
        return []
    of = language or language_of([said])
    queries = []
    own, context = _weights(said, of) if recent else (1.0, 0.0)
    queries.append(RecallQuery(said, own, "message"))
    if context:
        queries.append(RecallQuery(_with_context(said, speaker, recent), context, "context"))
    if has_cue(said, SEEKS_ADVICE[of], of):
        subject = _subject(said, of)
        if subject:
            queries.append(RecallQuery(_PREFERENCE[of].format(subject), _PREFERENCE_WEIGHT, "preference"))
    return queries


def _with_context(message: str, speaker: str, recent: Sequence[Utterance]) -> str:
    last = list(recent)[-2 * _RECENT_MESSAGES :]
    answers = [place for place, said in enumerate(last) if said.role == "assistant"]
    asked = [place for place, said in enumerate(last) if said.role == "user"]
    kept = sorted([*asked[-_RECENT_MESSAGES + 1 :], *answers[-1:]])
    return "\n".join(
        [
            *(indexed_text(last[place].speaker, last[place].text[:_LONGEST]) for place in kept),
            indexed_text(speaker, message),
        ]
    )


def _weights(message: str, language: Language) -> tuple[float, float]:
    """How much the message counts by itself, and how much with what was said before it."""
    if _contains(message, ASKS_COUNSEL[language]) or not asks(message, language):
        return _WEIGHTS_TALKING
    subjects = len(informative_terms(message))
    if subjects <= _OPEN or _contains(message, QUOTES[language]):
        return _WEIGHTS_OPEN
    return _WEIGHTS_HINT if subjects <= _SHORT and refers_back(message, language) else (1.0, 0.0)


def _contains(message: str, cues: frozenset[str]) -> bool:
    folded = message.lower()
    return any(cue in folded for cue in cues)


def _subject(message: str, language: Language) -> str:
    """The message without the words that make it a request."""
    cues = SEEKS_ADVICE[language] | ASKS[language]
    if language == "en":
        return " ".join(word for word in english_words(message) if word not in cues and not is_weak(word))
    for cue in sorted(cues, key=len, reverse=True):
        message = message.replace(cue, " ")
    return " ".join(message.split())
