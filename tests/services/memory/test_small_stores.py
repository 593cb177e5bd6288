"""What is found in a store of a few exchanges, where a question may be the best match of itself."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from services.search.hits import Ranking, SearchList, Unit
from services.search.index_terms import marked
from services.search.likelihood import concerns_nobody
from services.search.queries import make_queries
from services.search.ranking import rank
from services.search.selection import ASKS_THE_SAME, Floor, select
from services.text.language import Language
from services.text.lexical import LexicalEmbeddings
from services.text.tokenizer import terms

pytestmark = pytest.mark.untraced

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)

FACTS = [
    ("我的狗叫什么名字？", "我养了一只叫布鲁诺的狗"),
    ("我住在哪个城市？", "我去年搬到杭州这个城市了"),
    ("我对什么过敏？", "我一吃花生就过敏"),
    ("What is my dog's name?", "I have a dog called Bruno"),
    ("Which city do I live in?", "Last year I moved to the city of Porto"),
    ("What am I allergic to?", "I have been allergic to peanuts since I was a child"),
]
OTHERS: dict[Language, list[str]] = {
    "zh": [
        "布鲁诺真可爱",
        "昨天看了诺兰的电影《盗梦空间》",
        "这部电影很烧脑",
        "明天要交季度报告",
        "祝你顺利",
        "最近在学弹吉他",
        "从哪首曲子开始的",
        "周末打算去爬山",
        "记得带水",
        "晚饭做了番茄牛腩",
        "听起来很香",
        "新同事姓陈",
        "工作还适应吗",
        "地铁又晚点了",
        "辛苦了",
        "窗外下雨了",
        "出门带伞",
        "妹妹考上了大学",
        "恭喜她",
        "书架终于装好了",
    ],
    "en": [
        "Bruno sounds lovely",
        "I saw Inception by Nolan yesterday",
        "That film is a puzzle",
        "The quarterly report is due tomorrow",
        "Good luck with it",
        "I am learning the guitar",
        "Which piece did you begin with",
        "We plan a hike this weekend",
        "Take enough water",
        "I cooked a beef stew",
        "That smells good from here",
        "The new colleague is called Chen",
        "I hope work goes well",
        "The train was late again",
        "How annoying",
        "It rains outside",
        "Take an umbrella",
        "My sister got into university",
        "Congratulations to her",
        "The shelf is finally up",
    ],
}
DENIALS: dict[Language, str] = {"zh": "不知道", "en": "I don't know"}


def store(talks: Sequence[Sequence[str]], *, speaker: str = "", indexed: bool = True) -> list[Unit]:
    """Units `0`, `1` .. of conversations, each of which is a list of what was said in turn."""
    units: list[Unit] = []
    for number, talk in enumerate(talks):
        before: str | None = None
        for text in talk:
            name = str(len(units))
            at = NOW - timedelta(hours=100 - number, minutes=-len(units))
            known = marked((), text, speaker, "user")
            units.append(
                Unit(
                    name,
                    str(number),
                    str(number),
                    at,
                    text,
                    known.terms,
                    before,
                    f"m{name}",
                    indexed=indexed,
                    concepts=known.concepts,
                    features=known.features,
                )
            )
            before = name
    return units


def ask(question: str, units: Sequence[Unit], trusted: float = 0.1) -> Ranking:
    embedder = LexicalEmbeddings()
    asked = make_queries(question)
    vectors = embedder.embed_documents([unit.text for unit in units])
    lists = []
    for place, query in enumerate(asked):
        words, vector = set(terms(query.text)), embedder.embed_query(query.text)
        cosines = [sum(a * b for a, b in zip(vector, other, strict=True)) for other in vectors]
        found = {unit.id: 1.0 for unit in units if words & set(unit.terms) and unit.indexed}
        meant = {unit.id: cosine for unit, cosine in zip(units, cosines, strict=True) if unit.indexed}
        lists += [SearchList(place, "lexical", found), SearchList(place, "dense", meant)]
    return rank(asked, lists, units, now=NOW, quality={"en": trusted, "zh": trusted})


def texts(ranking: Ranking) -> list[str]:
    return [result.unit.text for result in ranking.results]


def language(text: str) -> Language:
    return "en" if text.isascii() else "zh"


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("trusted", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("question", "fact"), FACTS)
def test_a_fact_is_first_however_little_else_is_known(
    question: str, fact: str, trusted: float, indexed: bool
) -> None:
    others = OTHERS[language(fact)]
    for size in range(0, len(others), 2):
        pairs = [others[at : at + 2] for at in range(1, size, 2)]
        units = store([[fact, others[0]], *pairs], indexed=indexed)
        assert texts(ask(question, units, trusted))[0] == fact
    assert texts(ask(question, store([[fact]]), trusted)) == [fact]


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(("question", "fact"), FACTS)
def test_a_question_that_was_asked_before_does_not_stand_in_the_way(
    question: str, fact: str, times: int, indexed: bool
) -> None:
    others = OTHERS[language(fact)]
    denial = DENIALS[language(fact)]
    for size in range(2, len(others), 4):
        pairs = [others[at : at + 2] for at in range(1, size, 2)]
        units = store([[fact, others[0]], *pairs, *[[question, denial]] * times], indexed=indexed)
        found = texts(ask(question, units))
        assert found[0] == fact
        assert found.index(denial) > 1


@pytest.mark.parametrize(("question", "fact"), FACTS)
def test_a_fact_that_is_asked_for_is_shown_and_a_general_question_shows_none(question: str, fact: str) -> None:
    others = OTHERS[language(fact)]
    units = store([[fact, others[0]], others[1:3], others[3:5], [question, DENIALS[language(fact)]]])
    shown = [
        [one.best.unit.text for one in select(ask(asked, units), floor=floor, shown=(), count_tokens=len).recalled]
        for asked in (question, "What is the capital of France?", "怎么煮米饭？")
        for floor in [Floor.of(of_nobody=concerns_nobody(asked))]
    ]
    assert shown[0][0] == fact
    assert shown[1:] == [[], []]


def test_a_question_alone_answers_nothing_and_is_not_shown() -> None:
    units = store([["我的狗叫什么名字？", "不知道"]], speaker="安娜")
    found = ask("我的狗叫什么名字", units)
    assert [result.echo for result in found.results if result.unit.id == "0"] == [True]
    chosen = select(found, floor=Floor.of(), shown=(), count_tokens=len)
    assert "0" not in {ranked.unit.id for one in chosen.recalled for ranked in one.units}
    assert ("0", ASKS_THE_SAME) in {(one.unit_id, one.reason) for one in chosen.excluded}


@pytest.mark.parametrize(
    "text",
    [
        "My dog Bruno has a name that nobody else has, what is yours?",
        "My dog is called that",
        "What is a good name?",
        "So what did you do?",
    ],
)
def test_what_says_more_or_does_not_ask_or_asks_something_else_is_no_echo(text: str) -> None:
    found = ask("What is my dog's name?", store([[text], ["My dog barks"]]))
    assert not any(result.echo for result in found.results)
