"""Finds what a prompt already says, so that recall does not say it again."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.context.source import PromptDraft
from services.memory.core.items import values_of
from services.memory.episodes.episode import StoredUnit
from services.memory.filing.checks import denies
from services.memory.reading.words import Words
from services.search.hits import Ranked, Unit
from services.search.selection import STATES_NOTHING
from services.text.questions import is_small_talk, states_something
from services.text.tokenizer import is_informative

ALREADY_SAID = "the prompt says it already"
HOLDS_NO_MORE = "holds no more"
_LONGEST = 500
"""Characters of a visible message that is compared: a longer one has the words of many others."""
_LETTER = re.compile(r"\b[A-Za-z]\b")
"""Single letters: “thank you x”."""
_CORE_MEMORY = ("core_memory", "core_memory_changes")


def covers(text: str, lines: Iterable[str]) -> bool:
    """Return whether lines have all informative words of a text; one that denies something needs ones that do."""
    denied = denies(text)
    known = "\n".join(line for line in lines if denies(line) == denied)
    return bool(known) and Words.of(text).covered_by(Words.of(known))


def unit_covered(unit: Unit, others: Sequence[Unit]) -> bool:
    """Return whether other units say all that one says."""
    return covers(unit.text, [other.text for other in others])


def _informs(text: str) -> bool:
    return is_informative(text) and not is_small_talk(_LETTER.sub("", text))


@dataclass(frozen=True)
class AlreadySaid:
    """Core memory and the visible conversation."""

    core_memory: Sequence[str] = ()
    """Lines."""
    visible: Sequence[tuple[str, datetime]] = ()
    """The user's statements in the visible conversation, with their times."""

    @classmethod
    def by(cls, draft: PromptDraft) -> "AlreadySaid":
        """Return what the sections selected so far say."""
        core = [line for each in draft.sections if each.name in _CORE_MEMORY for line in each.text.splitlines()]
        said = [
            (each["content"], each["created_at"])
            for each in draft.history
            if each["role"] == "user" and len(each["content"]) <= _LONGEST and states_something(each["content"])
        ]
        return cls(core, said)

    def has_filed(self, unit: StoredUnit) -> bool:
        """Return whether core memory has every value that it was given from a message."""
        values = [
            text
            for old, new in unit.filed or ()
            for field, text in values_of(new or {})
            if (field, text) not in values_of(old or {})
        ]
        core = "\n".join(self.core_memory)
        return bool(values) and all(text in core for text in values)

    def has(self, text: str, said_at: datetime) -> bool:
        """Return whether core memory as a whole, or a message that is not older, says all that a text says."""
        return covers(text, self.core_memory) or any(
            at >= said_at and covers(text, [message]) for message, at in self.visible
        )


def needless(
    best: Sequence[Ranked],
    units: Mapping[str, StoredUnit],
    said: AlreadySaid,
    *,
    least: float,
    asks_of_past: bool,
    asks_of_answers: bool,
) -> dict[str, str]:
    """Return why units need not be shown, by unit id.

    Args:
        best: The units that were found.
        units: The stored units, by id.
        said: What the prompt already says.
        least: Minimum probability of a shown unit; others are not examined.
        asks_of_past: Whether the message asks about the past, so that replaced statements are shown too.
        asks_of_answers: Whether the message asks what was said, so that answers are shown for themselves.
    """
    likely = [ranked for ranked in best if ranked.likelihood >= least and ranked.unit.id in units]
    first = max(likely, key=lambda ranked: ranked.likelihood).unit.id if likely else ""
    filed = [ranked.unit.text for ranked in likely if ranked.unit.message_id is None]
    reasons: dict[str, str] = {}
    for ranked in likely:
        stored = units[ranked.unit.id]
        if stored.valid_until is not None and not asks_of_past:
            reasons[ranked.unit.id] = HOLDS_NO_MORE
        elif stored.message_id is not None and not ranked.unit.by_assistant and not _informs(stored.text):
            reasons[ranked.unit.id] = STATES_NOTHING
        elif ranked.unit.by_assistant:
            if not asks_of_answers and ranked.unit.id != first and stored.question:
                if not (_informs(stored.question) and states_something(stored.question)):
                    reasons[ranked.unit.id] = STATES_NOTHING
                elif said.has(stored.question, stored.created_at) or covers(stored.question, filed):
                    reasons[ranked.unit.id] = ALREADY_SAID
        elif said.has(stored.text, stored.created_at) or (ranked.unit.id != first and said.has_filed(stored)):
            reasons[ranked.unit.id] = ALREADY_SAID
    return reasons
