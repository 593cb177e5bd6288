"""Whose words a change of memory rests on: the user's own, or those of content that somebody else wrote. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.memory.commands.shown_text import shown_spans
from services.memory.commands.text import folded, in_the_open, masked, works_on_text
from services.text.caches import text_cache
from services.text.tokenizer import informative_terms, terms

_OF_USER = "the user's user's users 用户 用户的"
"""Words by which a model speaks of the user."""
_MOST_ALIEN = 0.5
"""Share of the words that nobody said but the writer of the change."""
_MOST_FOREIGN = 1 / 3
"""Share of the words that stand in foreign content and in nothing that the user said."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-", re.IGNORECASE)


@dataclass(frozen=True)
class Read:
    """What a model has read before it changes memory."""

    said: Sequence[str] = ()
    """The user's own words, those of the message last."""
    foreign: Sequence[str] = ()
    """Documents, results of tools and pasted texts of the same turn."""
    remembered: Sequence[str] = ()
    """Texts made from such words earlier: answers, memories, summaries; and what the client's system said."""


def own_words(message: str) -> str:
    """Return what the user says in a message themselves: without what it quotes, shows or asks to work on."""
    if works_on_text(message):
        text = folded(message)
        return " ".join(in_the_open(text, masked(text)).split())
    own, end = [], 0
    for span in shown_spans(message):
        own.append(message[end : span.start])
        end = span.end
    return " ".join([*own, message[end:]]).strip() if own else message


@text_cache(64)
def pasted_words(message: str) -> str:
    """Return what a message quotes, shows or asks to work on; empty = it only says something."""
    if works_on_text(message):
        return message
    return "\n".join(message[span.start : span.end] for span in shown_spans(message))


def rests_on_user(text: str, read: Read, *, removes: bool = False) -> bool:
    """Whether a change of memory says what the user said; true where there is nothing else that could say it.

    Of what the model read in the same turn, no third of the change's words may come, and half of them must be the
    user's. Of what was remembered of foreign words, no third may come.

    Args:
        text: what is to be remembered, or forgotten.
        read: what the model read.
        removes: whether it takes something out of memory: then the message itself must say so, as the words of
            what is remembered are the user's anyway; an id says nothing that could be compared.
    """
    if not any(read.foreign) and not any(read.remembered):
        return True
    if removes and _ID.search(text):
        return False
    said = read.said[-1:] if removes else read.said
    sought = informative_terms(text) - frozenset(terms(_OF_USER))
    own = frozenset(term for each in said for term in terms(each))
    if not sought:
        return bool(text.strip()) and text.strip().casefold() in " ".join(said).casefold()
    alien = sought - own
    others = frozenset(term for each in (*read.foreign, *read.remembered) for term in terms(each))
    if len(alien & others) >= _MOST_FOREIGN * len(sought):
        return False
    return not any(read.foreign) or len(alien) <= _MOST_ALIEN * len(sought)
