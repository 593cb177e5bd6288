from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.hits import Ranking, SearchLeg, SearchList, Unit
from services.search.parameters import RankingParameters
from services.search.queries import RecallQuery
from services.search.ranking import rank
from services.text.tokenizer import terms

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PLAIN = RankingParameters(
    window=0,
    window_dense=0,
    visit=0,
    association=0,
    age=0,
    importance=0,
    relevance=0,
    by_assistant=1,
    only_asks=1,
    written=1,
    oneself=1,
    fitting=1,
    corrects=1,
)


def unit(name: str, text: str, *, conversation: str = "", previous: str | None = None, minutes: float = 0) -> Unit:
    """A unit said `minutes` before now; in its own conversation unless one is named."""
    return Unit(
        id=name,
        episode_id=name,
        conversation_id=conversation or name,
        created_at=NOW - timedelta(minutes=minutes),
        text=text,
        terms=tuple(terms(text)),
        previous=previous,
    )


def found(leg: SearchLeg, query: int = 0, /, **scores: float) -> SearchList:
    return SearchList(query, leg, scores)


def ranked(
    text: str,
    lists: Sequence[SearchList],
    units: Sequence[Unit],
    parameters: RankingParameters = PLAIN,
    english: float = 1.0,
) -> Ranking:
    asked = [RecallQuery(text, 1.0, "message")]
    return rank(asked, lists, units, now=NOW, quality={"en": english, "zh": 0.0}, parameters=parameters)


def order(ranking: Ranking) -> list[str]:
    return [result.unit.id for result in ranking.results]


A, B, C = (unit(name, text) for name, text in [("a", "red apples"), ("b", "green pears"), ("c", "blue plums")])


def test_scores_are_compared_within_their_list() -> None:
    lists = [found("lexical", a=30.0, b=3.0), found("dense", a=0.2, b=0.9, c=0.85)]
    assert order(ranked("red apples, pears", lists, [A, B, C])) == ["b", "a", "c"]
    assert order(ranked("red apples, pears", lists, [A, B, C], english=0.2)) == ["a", "b", "c"]


@pytest.mark.parametrize("scores", [{"a": 30.0, "b": 3.0}, {"a": -3.0, "b": 30.0}])
def test_words_count_by_what_was_found_and_not_by_the_scores_of_the_index(scores: dict[str, float]) -> None:
    result = ranked("red apples, pears", [SearchList(0, "lexical", scores)], [A, B]).results
    assert [(one.unit.id, one.legs[0].rank) for one in result] == [("a", 1), ("b", 2)]
    assert result[1].score == pytest.approx(result[0].score / 2)


def test_an_embedding_that_does_not_know_the_language_decides_nothing() -> None:
    lists = [found("lexical", a=2.0, b=1.0), found("dense", b=0.9, a=0.1)]
    result = ranked("水果", lists, [unit("b", "果汁太甜"), unit("a", "水果很甜")]).results
    assert [one.unit.id for one in result] == ["a", "b"]
    assert {leg.leg for one in result for leg in one.legs} == {"lexical"}


def test_a_query_of_less_weight_counts_less() -> None:
    asked = [RecallQuery("apples", 1.0, "message"), RecallQuery("pears", 0.3, "preference")]
    lists = [found("lexical", a=9.0), found("lexical", 1, b=9.0)]
    result = rank(asked, lists, [B, A], now=NOW, quality={}, parameters=PLAIN)
    assert order(result) == ["a", "b"]
    assert result.results[1].legs[0].query == 1
    assert result.results[1].score == pytest.approx(0.3 * result.results[0].score)


def test_ranks_alone_can_be_fused() -> None:
    lists = [found("lexical", a=1.0, b=1.0, c=1.0), found("dense", c=0.9, b=0.8, a=0.7)]
    by_rank = replace(PLAIN, fusion="ranks", rrf_k=60)
    result = ranked("red apples, apples, green pears, plums", lists, [A, B, C], by_rank).results
    assert [leg.rank for leg in next(one for one in result if one.unit.id == "c").legs] == [3, 1]
    assert max(one.score for one in result) - min(one.score for one in result) < 0.01


def test_every_score_is_the_sum_of_what_is_explained() -> None:
    lists = [found("lexical", a=3.0, b=1.0), found("dense", b=0.9, c=0.4)]
    for result in ranked("red, green pears", lists, [A, B, C], RankingParameters()).results:
        explained = sum(leg.contribution for leg in result.legs)
        factors = result.importance_factor * result.age_factor * result.kind_factor
        assert result.score == pytest.approx(explained * factors)
    first, second, _ = ranked("red, green pears", lists, [C, A, B]).results
    assert [(leg.leg, leg.rank) for leg in first.legs] == [("lexical", 1), ("dense", 1)]
    assert [(leg.leg, leg.rank) for leg in second.legs] == [("lexical", 2)]
    assert first.legs[0].raw == pytest.approx(2 * (second.legs[0].raw or 0))
    assert first.legs[1].raw == 0.9


def test_only_what_is_looked_at_is_explained() -> None:
    units = [unit(f"u{at}", "red apples") for at in range(60)]
    result = ranked("apples", [SearchList(0, "lexical", {one.id: 1.0 for one in units})], units).results
    assert [bool(one.legs) for one in result] == [True] * 40 + [False] * 20


def _talk(topics: Sequence[str]) -> list[Unit]:
    """A conversation of pairs: what is said of each topic, and the answer to it."""
    units: list[Unit] = []
    for at, topic in enumerate(topics):
        before = units[-1].id if units else None
        units.append(unit(f"q{at}", f"tell {topic} story", conversation="c", previous=before, minutes=90 - at))
        units.append(
            unit(f"a{at}", f"answer{at} {topic} end{at}", conversation="c", previous=f"q{at}", minutes=90 - at)
        )
    return units


def test_in_a_talk_an_answer_is_lifted_by_its_question() -> None:
    units = [
        *_talk(["garden", "violin", "harbour", "marathon", "bakery", "opera", "canoe", "piano"]),
        unit("x", "answer1 elsewhere"),
    ]
    scores = {one.id: 1.0 for one in units} | {"q1": 5.0}
    result = ranked("tell answer1 of violin", [SearchList(0, "lexical", scores)], units, RankingParameters())
    assert result.coherence > 0.4
    assert order(result).index("a1") < order(result).index("x")
    assert "window" in {leg.leg for leg in next(one for one in result.results if one.unit.id == "a1").legs}


def test_where_few_have_a_neighbour_those_are_not_preferred_for_it() -> None:
    talk = _talk(["garden", "violin", "harbour", "marathon", "bakery", "opera"])
    alone = [unit(f"alone{at}", f"remark{at} on subject{at}") for at in range(90)]
    few, many = (
        ranked("garden", [SearchList(0, "lexical", {one.id: 1.0 for one in units})], units, RankingParameters())
        for units in ([*talk, *alone], talk)
    )
    assert few.coherence < many.coherence / 2


def test_remarks_that_have_nothing_in_common_do_not_speak_for_each_other() -> None:
    texts = [
        f"{subject} {verb}" for subject in ("cat", "car", "tea") for verb in ("vanished", "sparkles", "broke")
    ]
    units = [
        unit(f"u{at}", text, conversation="c", previous=f"u{at - 1}", minutes=50 - at)
        for at, text in enumerate(texts[::2] + texts[1::2])
    ]
    result = ranked("cat", [SearchList(0, "lexical", {one.id: 1.0 for one in units})], units, RankingParameters())
    assert result.coherence < 0.3


def test_what_shares_a_name_with_the_best_unit_is_associated() -> None:
    units = [
        unit("first", "The cashier is my cousin Marlene"),
        unit("third", "Oscar has his birthday in April"),
        unit("second", "Marlene has her birthday in March"),
        unit("fourth", "April was wet"),
    ]
    lists = [found("lexical", first=1.0, third=1.0, second=1.0, fourth=1.0)]
    assert order(ranked("birthday of the cashier", lists, units))[1] == "third"
    associated = replace(PLAIN, association=0.2)
    assert order(ranked("birthday of the cashier", lists, units, associated))[:2] == ["first", "second"]


def test_what_is_not_indexed_yet_is_ranked_by_its_words() -> None:
    fresh = replace(unit("new", "My cat is called Minka"), indexed=False)
    old = [unit("old", "A cat crossed the road"), unit("other", "The road is closed")]
    lists = [found("lexical", old=4.0, other=0.5), found("dense", old=0.6, other=0.2)]
    assert order(ranked("What is my cat called, Minka?", lists, [*old, fresh]))[0] == "new"
    assert order(ranked("What is my cat called?", [], [fresh])) == ["new"]


def test_importance_and_age_shift_what_is_otherwise_equal() -> None:
    important = replace(A, id="important", importance=0.9)
    old = replace(A, id="old", created_at=NOW - timedelta(days=300))
    older = replace(A, id="older", created_at=NOW - timedelta(days=900))
    lists = [found("lexical", a=1.0, important=1.0, old=1.0, older=1.0)]
    result = ranked(
        "apples", lists, [older, old, A, important], RankingParameters(association=0, window=0, visit=0)
    )
    assert order(result) == ["important", "a", "older", "old"]
    assert [one.age_factor for one in result.results] == [1.0, 1.0, 0.95, 0.95]


def test_two_texts_that_say_the_same_are_marked_and_a_negation_is_not_the_same() -> None:
    texts = {
        "one": "I like the small red house on the hill by the old river bend",
        "same": "I like the small red house on the hill, by the old river bend!",
        "not": "I like not the small red house on the hill by the old river bend",
        "two": "I like the 2 small red house on the hill by the old river bend",
    }
    units = [unit(name, text) for name, text in texts.items()]
    result = ranked("house", [SearchList(0, "lexical", {"one": 4.0, "same": 3.0, "two": 2.0, "not": 1.0})], units)
    assert {one.unit.id: one.duplicate_of for one in result.results if one.duplicate_of} == {"same": "one"}


def test_relevance_is_absolute() -> None:
    units = [unit("a", "The lighthouse on the island"), unit("b", "A kettle for the kitchen")]
    result = ranked("Which lighthouse keeper fed the seagulls?", [found("lexical", a=1.0, b=0.9)], units)
    assert result.results[0].score == pytest.approx(0.5)
    assert 0 < result.results[0].relevance < 0.5
    assert result.results[1].relevance == 0


def test_of_a_word_that_is_cut_differently_the_characters_count_a_part() -> None:
    units = [unit("a", "我养了一只叫布鲁诺的狗"), unit("b", "猫在睡觉"), unit("c", "我的狗叫布鲁诺")]
    found_ = [found("lexical", a=1.0, b=1.0, c=1.0)]
    covered = {one.unit.id: one.relevance for one in ranked("我的狗叫什么名字", found_, units).results}
    assert 0 == covered["b"] < covered["a"] < covered["c"]


def test_what_was_erased_meanwhile_and_what_nobody_found_is_passed_over() -> None:
    assert order(ranked("fruit", [found("lexical", a=1.0, erased=2.0)], [A, B])) == ["a"]
    assert ranked("fruit", [], [A]).results == ()


def test_a_list_without_its_query_is_an_error() -> None:
    with pytest.raises(ValueError, match="no query"):
        ranked("fruit", [found("lexical", 1, a=1.0)], [A])


NAMES = [f"u{at}" for at in range(8)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(0, 100)),
    st.dictionaries(st.sampled_from(NAMES), st.floats(-1, 1)),
    st.lists(st.text("ab茶水 ", max_size=12), min_size=8, max_size=8),
    st.sampled_from(["scores", "ranks"]),
    st.booleans(),
)
def test_whatever_is_found_is_ranked_once(
    lexical: dict[str, float], dense: dict[str, float], texts: list[str], fusion: str, indexed: bool
) -> None:
    units = [
        replace(unit(name, text, conversation="c", previous=before, minutes=at * 50), indexed=indexed)
        for at, (name, text, before) in enumerate(zip(NAMES, texts, [None, *NAMES], strict=False))
    ]
    parameters = RankingParameters(fusion="ranks" if fusion == "ranks" else "scores")
    lists = [SearchList(0, "lexical", lexical), SearchList(0, "dense", dense)]
    result = ranked("a 茶水 b", lists, units, parameters)
    assert sorted(order(result)) == (sorted({*lexical, *dense}) if indexed else NAMES)
    assert [one.position for one in result.results] == list(range(1, len(result.results) + 1))
    scores = [one.score for one in result.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 2.5 for score in scores)
    assert 0 <= result.coherence <= 1


def test_a_short_reply_is_about_what_it_replies_to() -> None:
    asked = replace(unit("asked", "Which street is your office on?", conversation="talk"), by_assistant=True)
    reply = unit("reply", "Fearnley Terrace", conversation="talk", previous="asked")
    alone = unit("alone", "Harbour View")
    units = [asked, reply, alone]
    ranking = ranked("office street", [found("lexical", asked=1.0, reply=0.1, alone=0.1)], units)
    relevance = {each.unit.id: each.relevance for each in ranking.results}
    assert relevance["asked"] > relevance["reply"] > relevance["alone"] == 0
