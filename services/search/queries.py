"""The queries of a message (its text, the talk it continues, its sentences), and what heads say about it.

An encoder puts a message beside what sounds like it, a question beside questions. Somebody who asks where to eat
does not say that they eat no meat: `matching`, which `training/matching.py` learned, turns a message towards what
bears on it. Linear heads (`training/heads.py`) tell a message that leaves a choice from others, one that needs
nothing of memory from one that may, a question that documents answer from small talk with the same words, and of
what was said what states a preference.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from services.text.language import SEMICOLONS, Sentence, language_of, sentences
from services.text.questions import (
    asks,
    asks_for_work,
    asks_in_general,
    is_about_oneself,
    is_about_the_assistant,
    refers_back,
)
from services.text.tokenizer import embedded_text, indexed_text, informative_terms, is_informative, simplified_text

_RECENT_MESSAGES = 5
_LONGEST, _END = 2_000, 500
"""Characters of a message that are sought, and how many of them are its end."""
_LONGEST_SAID = 300
_MOST_PARTS = 6
_TALKING, _OPEN = 0.75, 0.5
"""How much the talk before counts where a message goes on, and where a question leaves its subject open."""
_ONE, _FEW = 1, 3


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message of the conversation at hand; the speaker as in what is indexed, or empty."""

    role: Literal["user", "assistant"]
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A message to search for.

    Attributes:
        text: The message.
        recent: What was said before it, one by one; empty where the message stands for itself.
        context_share: How much these count, 0 to 1.
        parts: Its sentences, where it has several that say something.
        asking: Which of them ask something; all where none does. What is sought stands there.
        asks: Whether it is a question.
        of_oneself: Whether it speaks of the user's own affairs.
        wants_work: Whether it orders something done or explained, and says nothing of its user.
        of_assistant: Whether it is about what the assistant said or did.
    """

    text: str
    recent: tuple[str, ...]
    context_share: float
    parts: tuple[str, ...]
    asking: tuple[bool, ...]
    asks: bool
    of_oneself: bool
    wants_work: bool
    of_assistant: bool

    @property
    def context(self) -> tuple[str, ...]:
        """Return the previous messages joined to the message; empty where it stands for itself."""
        return (*self.recent, self.text[:_LONGEST_SAID]) if self.recent else ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts that are sought: the message, what was said before it, and its parts."""
        return (self.text, *self.recent, *self.parts)

    @property
    def embedded(self) -> tuple[str, ...]:
        """Return the texts that are embedded: `texts`, without a message that is embedded part by part."""
        return (*self.recent, *self.parts) if self.parts else (self.text, *self.recent)

    def vectors(self, embeddings: ArrayLike) -> NDArray[np.float32]:
        """Return the embeddings (rows) of `texts`, from those of `embedded`; a message lies amid its parts."""
        found = np.asarray(embeddings, dtype=np.float32)
        if not self.parts or not len(found):
            return found
        parts = found[len(self.recent) :].astype(np.float64)
        message = (parts / np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-9)).mean(axis=0)
        return np.concatenate([message[np.newaxis].astype(np.float32), found])


def of_length_1(vectors: ArrayLike) -> NDArray[np.float32]:
    """Return vectors (rows) of length 1; one without a direction stays 0."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    found: NDArray[np.float32] = rows / np.maximum(lengths, 1e-9)[:, np.newaxis]
    return found


def make_query(message: str, recent: Sequence[Utterance] = (), *, speaker: str = "") -> Query | None:
    """Return what to search for; None for a message without a letter.

    A message that goes on talking instead of asking, or does not name its subject, is sought together with what
    was said before it (`recent`, the newest last, without the message itself).
    """
    said = message.strip()
    if len(said) > _LONGEST:  # what a long message is about stands at its ends
        said = f"{said[: _LONGEST - _END]}\n{said[-_END:]}"
    if not any(character.isalnum() for character in said):
        return None
    language = language_of([said])
    question = asks(said, language)
    # In the form in which they are indexed, so that most are embedded already
    last = [
        embedded_text(each.role, each.speaker, each.text[:_LONGEST_SAID]) for each in recent[-_RECENT_MESSAGES:]
    ]
    share = _context_share(said, question=question) if recent else 0.0
    parts = _parts(said)
    return Query(
        text=indexed_text(speaker, said),
        recent=tuple(each for each in last if each) if share else (),
        context_share=share,
        parts=tuple(each.text.strip() for each in parts),
        asking=tuple(each.asks or not any(part.asks for part in parts) for each in parts),
        asks=question,
        of_oneself=(own := is_about_oneself(said, language) and not asks_in_general(said)),
        wants_work=not own and (asks_in_general(said) or asks_for_work(simplified_text(said).replace("’", "'"))),
        of_assistant=is_about_the_assistant(said, language),
    )


def _parts(message: str) -> list[Sentence]:
    """Return the sentences that say something, if there are several; of many those that ask, and the first."""
    every = sentences(message, SEMICOLONS)
    parts = [each for each in every if is_informative(each.text)] if len(every) > 1 else []
    if len(parts) > _MOST_PARTS:
        first = sorted(range(len(parts)), key=lambda at: (not parts[at].asks, at))[:_MOST_PARTS]
        parts = [parts[at] for at in sorted(first)]
    return parts if len(parts) > 1 else []


def _context_share(message: str, *, question: bool) -> float:
    if not question:
        return _TALKING
    subjects = len(informative_terms(message))
    is_open = subjects <= _ONE or (subjects <= _FEW and refers_back(message, language_of([message])))
    return _OPEN if is_open else 0.0


@dataclass(frozen=True, slots=True)
class Head:
    """A logistic regression over embeddings of length 1.

    Attributes:
        direction: Of length 1.
        scale: Of the cosine with the direction.
        constant: Added to it.
    """

    direction: NDArray[np.float32]
    scale: float
    constant: float

    def logit(self, vector: Sequence[float] | NDArray[np.float32]) -> float:
        """Return the logit for an embedding."""
        found = np.asarray(vector, dtype=np.float32)
        cosine = float(found @ self.direction) / max(math.sqrt(found @ found), 1e-9)
        return self.scale * cosine + self.constant

    def probabilities(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities for embeddings with these cosines with the direction."""
        found: NDArray[np.float64] = 1 / (1 + np.exp(-self.scale * cosines - self.constant))
        return found


class MessageKind(NamedTuple):
    """Kind of a message, as probabilities; without heads no choice, and even odds that it needs nothing.

    Attributes:
        choice: It leaves a choice on which a preference may bear.
        nothing: It needs nothing of memory: a greeting, a task, a question about the world.
    """

    choice: float = 0.0
    nothing: float = 0.5


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads for one encoder.

    Attributes:
        leaves_choice: A message leaves a choice on which a preference may bear.
        needs_nothing: A message needs nothing of memory.
        asks_documents: A message asks what the documents of an organisation would answer.
        prefers: What was said states what its author likes, wants or avoids.
        matching: Turns the embedding of a message towards those of what bears on it: two matrices, whose product
            is added.
    """

    leaves_choice: Head
    needs_nothing: Head
    asks_documents: Head
    prefers: Head
    matching: NDArray[np.float32]

    def turned(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return embeddings of messages (rows) turned towards those of what bears on them, of length 1."""
        into, out = self.matching
        return of_length_1(vectors + vectors @ into.T @ out)

    def kind_of(self, vector: Sequence[float]) -> MessageKind:
        """Return what the message with this embedding is like."""
        heads = (self.leaves_choice, self.needs_nothing)
        return MessageKind(*(1 / (1 + math.exp(-head.logit(vector))) for head in heads))

    @classmethod
    @cache
    def of(cls, encoder: str) -> "Heads | None":
        """Return the heads for an encoder by its name; None if none were learned with it."""
        stored = json.loads((files(__package__) / "heads.json").read_text(encoding="utf-8"))
        if stored.pop("encoder") != encoder:
            return None
        with (files(__package__) / "matching.npy").open("rb") as file:
            matching = np.load(file).astype(np.float32)
        return cls(matching=matching, **{name: _head(head) for name, head in stored.items()})


def _head(stored: Mapping[str, Sequence[float]]) -> Head:
    weights = np.array(stored["weights"], dtype=np.float32)
    scale = float(np.linalg.norm(weights))
    return Head(weights / scale, scale, float(stored["constant"][0]))
