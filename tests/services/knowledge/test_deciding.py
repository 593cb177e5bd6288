import pytest

from services.knowledge.deciding import Closeness, Manner, by_closeness, by_words
from services.knowledge.evidence import Evidence
from services.knowledge.matching import Hit
from services.knowledge.profile import BaseProfile

COFFEE, GARDEN = BaseProfile("coffee", ""), BaseProfile("garden", "")
ASKS, ASKS_OF_HIMSELF = Manner(asks=True, own=False), Manner(asks=True, own=True)
TELLS, TELLS_OF_HIMSELF = Manner(asks=False, own=False), Manner(asks=False, own=True)


def hit(profile: BaseProfile, coverage: float = 0.0, *keywords: str, terms: int = 3) -> Hit:
    return Hit(profile, keywords, float(len(keywords)), coverage, terms)


def near(*, believed: bool = False, **cosines: float) -> Closeness:
    return Closeness(cosines, 0.2, believed)


def test_one_keyword_decides_where_the_message_is_about_little_else() -> None:
    decision = by_words([hit(GARDEN), hit(COFFEE, 0.67, "descale")], ASKS)
    assert decision is not None
    assert (decision.profile, decision.reason) == (COFFEE, "keywords: descale")
    assert by_words([hit(COFFEE, 0.5, "descale")], ASKS) is None
    assert by_words([hit(COFFEE, 1.0, "descale", terms=1)], Manner(asks=True, own=False, defines=True)) is None
    assert by_words([hit(COFFEE, 1.0)], ASKS) is None


def test_more_keywords_make_it_surer() -> None:
    one, two = (by_words([hit(COFFEE, 0.67, *words)], ASKS) for words in (["a"], ["a", "b"]))
    assert one
    assert two
    assert 0.5 < one.confidence < two.confidence < 1


def test_two_bases_that_are_nearly_as_close_decide_nothing() -> None:
    hits = [hit(COFFEE, 0.7, "water"), hit(GARDEN, 0.6, "pond")]
    assert by_words(hits, ASKS) is None
    passages = {"coffee": Evidence(0.9, 3), "garden": Evidence(0.8, 3)}
    assert by_closeness(hits, ASKS, Closeness(passages=passages)) is None
    passages["garden"] = Evidence(0.3, 2)
    decided = by_closeness(hits, ASKS, Closeness(passages=passages))
    assert decided
    assert decided.profile is COFFEE


@pytest.mark.parametrize(("manner", "decides"), [(ASKS, True), (TELLS, True), (ASKS_OF_HIMSELF, False)])
def test_who_speaks_of_himself_has_to_be_the_closer(manner: Manner, decides: bool) -> None:
    passages = {"coffee": Evidence(0.65, 2)}
    assert (by_closeness([hit(COFFEE)], manner, Closeness(passages=passages)) is not None) == decides
    assert by_words([hit(COFFEE, 1.0, "a")], TELLS_OF_HIMSELF) is None


def test_a_passage_counts_by_how_much_of_the_question_it_speaks_of() -> None:
    def decision(coverage: float, shared: int) -> bool:
        return (
            by_closeness([hit(COFFEE)], ASKS, Closeness(passages={"coffee": Evidence(coverage, shared)}))
            is not None
        )

    assert decision(0.6, 2)
    assert not decision(0.4, 2)
    assert not decision(1.0, 1)
    assert not decision(1.0, 0)


@pytest.mark.parametrize(
    ("cosine", "believed", "decides"), [(0.7, True, True), (0.7, False, False), (0.3, True, False)]
)
def test_meaning_decides_by_itself_where_the_embedding_is_believed(
    cosine: float, believed: bool, decides: bool
) -> None:
    found = by_closeness([hit(COFFEE), hit(GARDEN)], ASKS, near(believed=believed, coffee=cosine, garden=0.1))
    assert (found is not None) == decides


def test_without_bases_there_is_nothing_to_decide() -> None:
    assert by_words([], ASKS) is None
    assert by_closeness([], ASKS, near()) is None
