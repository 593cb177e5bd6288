"""Facts that rules find in a message: the plain statements that a user makes about themselves and their people.

Precision comes first: a wrong fact is worse than none. Questions, suppositions, quotations, hearsay and texts to
work on state nothing; the remaining clauses are matched against the frames of their language.
"""

from dataclasses import replace
from datetime import datetime

from services.memory.agent.fact import Fact
from services.memory.agent.facts_chinese import facts_in_chinese
from services.memory.agent.facts_english import facts_in_english
from services.memory.agent.timed_facts import facts_with_times
from services.memory.items import SINGLE_FIELDS
from services.text.clauses import statements
from services.text.language import language_of
from services.text.tokenizer import simplified
from services.time_reference.validity import timed

_MOST_FACTS = 8
_ANY_DAY = datetime(2026, 1, 1)
"""Only whether there are words of time matters."""


def facts_of(message: str) -> list[Fact]:
    """Return what a message states, in order, without duplicates; of single-valued fields, the last value."""
    if language_of([message]) == "zh":
        folded = simplified(message)
        facts = facts_with_times(statements(folded), facts_in_chinese)
        if len(folded) == len(message) and folded != message:  # as the user writes it
            as_written = str.maketrans({new: old for new, old in zip(folded, message, strict=True) if new != old})
            facts = [replace(fact, text=fact.text.translate(as_written)) for fact in facts]
    else:
        facts = facts_with_times(statements(message), facts_in_english)
    found: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        only = (
            fact.field in SINGLE_FIELDS and not timed(fact.text, _ANY_DAY).words
        )  # what is over displaces nothing
        key = (fact.field, "" if only else fact.text.casefold())
        found.pop(key, None)
        found[key] = fact
    return list(found.values())[:_MOST_FACTS]
