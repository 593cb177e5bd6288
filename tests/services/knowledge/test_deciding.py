import pytest

from services.knowledge.deciding import Closeness, Manner, decide
from services.knowledge.matching import Hit
from services.knowledge.profile import BaseProfile

COFFEE, GARDEN = BaseProfile("coffee", ""), BaseProfile("garden", "")
ASKS, TELLS = Manner(asks=True, own=False), Manner(asks=False, own=True)


def hit(profile: BaseProfile, coverage: float = 0.0, *keywords: str) -> Hit:
    return Hit(profile, keywords, float(len(keywords)), coverage)


def near(floor: float = 0.2, *, believed: bool = False, **cosines: float) -> Closeness:
    return Closeness(cosines, floor, believed)


def test_one_keyword_decides_where_the_message_is_about_little_else() -> None:
    decision = decide([hit(GARDEN), hit(COFFEE, 0.5, "descale")], ASKS)
    assert decision is not None
    assert (decision.profile, decision.reason) == (COFFEE, "keywords: descale")
    assert decide([hit(COFFEE, 0.1, "descale")], ASKS) is None


def test_more_keywords_make_it_surer() -> None:
    one, two = (decide([hit(COFFEE, 0.4, *words)], ASKS) for words in (["a"], ["a", "b"]))
    assert one
    assert two
    assert 0.5 < one.confidence < two.confidence < 1


def test_two_bases_that_are_nearly_as_close_decide_nothing() -> None:
    assert decide([hit(COFFEE, 0.5, "water"), hit(GARDEN, 0.4, "pond")], ASKS) is None


def test_who_talks_of_himself_and_asks_nothing_is_left_in_peace() -> None:
    hits = [hit(COFFEE, 0.5, "coffee")]
    assert decide(hits, ASKS) is not None
    assert decide(hits, TELLS) is None


def test_words_alone_decide_nothing_without_a_keyword_until_meaning_was_asked() -> None:
    hits = [hit(COFFEE, 0.8)]
    assert decide(hits, ASKS) is None
    decision = decide(hits, ASKS, near(coffee=0.1))
    assert decision is not None
    assert decision.reason == "close to its description, questions and headings"


@pytest.mark.parametrize(
    ("cosine", "believed", "decides"), [(0.7, True, True), (0.7, False, False), (0.3, True, False)]
)
def test_meaning_decides_by_itself_where_the_embedding_is_believed(
    cosine: float, believed: bool, decides: bool
) -> None:
    found = decide([hit(COFFEE), hit(GARDEN)], ASKS, near(believed=believed, coffee=cosine, garden=0.1))
    assert (found is not None) == decides


def test_without_bases_there_is_nothing_to_decide() -> None:
    assert decide([], ASKS, near()) is None
