"""Requests to forget all of a subject or a category: “everything about my job”, 家里人的事都忘掉. Pure.

Of what memory holds, all goes that names the subject, or speaks of a kind of it: a mother belongs to the family.
Concepts (`services.text.concepts`) tell which kinds there are.
"""

import re
from collections.abc import Sequence

from services.memory.commands.holdings import Holdings, Place
from services.memory.commands.pieces import Content, content_of
from services.memory.commands.text import folded
from services.text.concepts import Facet, facets, widened
from services.text.mentions import BEINGS, Subject, is_of_kin, is_of_speaker

_ENGLISH = re.compile(
    r"\b(?:everything|anything|nothing|all|whatever)\b(?: \S+){0,5}? "
    r"(?:about|on|regarding|concerning|to do with|related to|relating to|involving)\b"
    r"|\b(?:all|any|every) (?:of )?(?:my|our|the|that|those)? ?(?:\S+ ){0,2}"
    r"(?:stuff|things?|info|information|details?|data|facts?|memories|records?)\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?:所有|全部|一切|凡是|任何)(?:关于|有关|涉及|跟|和|与|我)?.{1,12}"
    r"|(?:关于|有关|涉及|跟|和|与).{1,12}?(?:有关|相关)的?.{0,6}?(?:都|全|通通|统统|一概|一律|一并|扔|删|清|忘|抹)"
    r"|的(?:事情?|事儿|内容|信息|东西|那些|记录|资料).{0,4}?(?:都|全|通通|统统|一概|一律|一并)"
    r"|方面的?"
)
_TRADE = "occupation"
"""A concept of people by what they do: the user's doctor is no part of the user's work."""
_OWN_TRADE = re.compile(r"\b(?:i'm|i am|i was|i used to be|i work|i've been)\b|我(?:是|当|做)", re.IGNORECASE)
_EVERYDAY = 0.3
"""Weight of a word of the request from which on it names a subject."""


def asks_for_all(message: str) -> bool:
    """Whether a message asks for all of something to be forgotten."""
    text = folded(message)
    return (_ENGLISH if text.isascii() else _CHINESE).search(text) is not None


def all_of(words: str, holdings: Holdings) -> list[Place]:
    """The pieces that speak of what some words name, or of a kind of it; none where they name nothing."""
    own = Subject.of(words).terms
    named = [facet for facet in facets(words) if facet.weight >= _EVERYDAY and not own.isdisjoint(facet.terms)]
    found = [place for place in holdings.places if _is_about(place, named, words)]
    return found if named else []


def _is_about(place: Place, named: Sequence[Facet], words: str) -> bool:
    """Whether a piece speaks of each thing that is named; where nobody is named, of what is the user's own."""
    content = content_of(place.text)
    if is_of_speaker(words) and content.of_kin and not is_of_kin(words):
        beings = [each for each in _named_in(content) if not BEINGS.isdisjoint(widened([each]))]
        if {concept for facet in named for concept in _asked(facet)}.isdisjoint(widened(beings)):
            return False  # “my wife's job” is no part of “my job”, and “my boss” is
    return not content.asks and all(_speaks_of(content, facet) for facet in named)


def _speaks_of(content: Content, facet: Facet) -> bool:
    asked = _asked(facet)
    of_trades = not asked.isdisjoint(widened([_TRADE]))
    is_own = not of_trades or _OWN_TRADE.search(content.text) is not None
    kinds = [each for each in _named_in(content) if is_own or _TRADE not in widened([each])]
    return not asked.isdisjoint(widened(kinds)) or set(facet.terms) <= content.terms


def _asked(facet: Facet) -> set[str]:
    """The concepts that a facet names, without the broader ones."""
    return {concept for concept, weight in facet.concepts.items() if weight == 1.0}


def _named_in(content: Content) -> list[str]:
    return [concept for concept, weight in content.concepts.items() if weight == 1.0]
