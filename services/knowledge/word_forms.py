"""Word forms that a stemmer keeps apart: irregular forms and longer words. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from services.text.tokenizer import terms

_IRREGULAR = """
begin began begun; break broke broken; bring brought; build built; burn burnt; buy bought; catch caught;
choose chose chosen; come came; cost; cut; deal dealt; draw drew drawn; drink drank drunk; drive drove
driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown;
forget forgot forgotten; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew
grown; hang hung; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; learn learnt;
leave left; lend lent; lie lay lain; lose lost loss; make made; mean meant; meet met; pay paid; ride rode
ridden; ring rang rung; rise rose risen; run ran; sell sold; send sent; shake shook shaken; sing sang sung;
sit sat; sleep slept; speak spoke spoken; spend spent; spill spilt; spoil spoilt; stand stood; steal stole
stolen theft; stick stuck; strike struck; swear swore sworn; swim swam swum; take took taken; teach taught;
tear tore torn; tell told; think thought; throw threw thrown; wake woke woken; wear wore worn; win won;
write wrote written; child children; foot feet; man men; mouse mice; person people; tooth teeth; woman
women; choose choice; arrive arrival; refuse refusal; renew renewal; repair mend fix; photo photograph
picture; phone telephone mobile
"""
_SHORTEST_STEM = 5
"""Fewest letters of a stem that may begin a longer word."""


@cache
def _first_forms() -> dict[str, str]:
    """Map each stem of the table to the first of its group; not at import, since stems need the dictionaries."""
    first: dict[str, str] = {}
    for group in _IRREGULAR.split(";"):
        stems = [term for word in group.split() for term in terms(word)]
        for stem in stems:
            first.setdefault(stem, stems[0])
    return first


@cache
def _forms_of(first: str) -> tuple[str, ...]:
    return tuple(form for form, base in _first_forms().items() if base == first)


def folded_forms(of: Iterable[str]) -> frozenset[str]:
    """The terms, each irregular form replaced by its word's first form."""
    first = _first_forms()
    return frozenset(first.get(term, term) for term in of)


def with_forms(of: Iterable[str]) -> list[str]:
    """The terms, each followed by its other forms, for an index of terms as written."""
    first = _first_forms()
    return list(dict.fromkeys(form for term in of for form in (term, *_forms_of(first.get(term, "")))))


@dataclass(frozen=True)
class Vocabulary:
    """The terms of a text, prepared for comparison with a message."""

    terms: frozenset[str]
    """Terms with irregular forms replaced."""
    beginnings: frozenset[str]
    """Prefixes of its longer English terms."""
    concepts: frozenset[str] = frozenset()
    """Concepts named in the text (`services.text.concepts`)."""

    @classmethod
    def of(cls, text_terms: Iterable[str], concepts: Iterable[str] = ()) -> "Vocabulary":
        """Build from a text's terms (`services.text.tokenizer`) and concepts."""
        folded = folded_forms(text_terms)
        beginnings = frozenset(term[:_SHORTEST_STEM] for term in folded if _may_go_on(term))
        return cls(folded, beginnings, frozenset(concepts))

    def __contains__(self, term: str) -> bool:
        """Whether it has the term, or an English word that begins with it ("photo", "photographs")."""
        if term in self.terms:
            return True
        if not _may_go_on(term) or term[:_SHORTEST_STEM] not in self.beginnings:
            return False
        return any(
            _may_go_on(other) and (other.startswith(term) or term.startswith(other)) for other in self.terms
        )


def _may_go_on(term: str) -> bool:
    return len(term) >= _SHORTEST_STEM and term.isascii() and term.isalpha()
