"""Whose words a change of memory rests on: the user's own, or those of content that somebody else wrote. Pure."""

from collections.abc import Sequence

from services.memory.commands.text import folded, in_the_open, masked, works_on_text
from services.text.tokenizer import informative_terms, terms

_OF_USER = "the user's user's users 用户 用户的"
"""Words by which a model speaks of the user."""
_MOST_ALIEN = 0.5
"""Share of the words that nobody said but the writer of the change."""
_MOST_FOREIGN = 1 / 3
"""Share of the words that stand in foreign content and in nothing that the user said."""


def own_words(message: str) -> str:
    """What the user says in a message themselves: without a text that it asks to work on."""
    if not works_on_text(message):
        return message
    text = folded(message)
    return " ".join(in_the_open(text, masked(text)).split())


def rests_on_user(text: str, said: Sequence[str], foreign: Sequence[str]) -> bool:
    """Whether a change of memory says what the user said; true where there is no foreign content that could.

    Args:
        text: what is to be remembered, or forgotten.
        said: the user's own words.
        foreign: documents, results of tools and pasted texts that the model has read in the same turn.
    """
    if not any(foreign):
        return True
    sought = informative_terms(text) - frozenset(terms(_OF_USER))
    own = frozenset(term for each in said for term in terms(each))
    if not sought:
        return bool(text.strip()) and text.strip().casefold() in " ".join(said).casefold()
    alien = sought - own
    theirs = alien & frozenset(term for each in foreign for term in terms(each))
    return len(alien) <= _MOST_ALIEN * len(sought) and len(theirs) < _MOST_FOREIGN * len(sought)
