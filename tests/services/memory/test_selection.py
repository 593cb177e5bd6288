from datetime import UTC, datetime, timedelta

import pytest

from services.llm.language import Language
from services.memory.hits import Ranked, Ranking, Unit
from services.memory.selection import Floor, Recalled, by_episode, select

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def result(
    name: str,
    *,
    episode: str = "",
    coverage: float = 1.0,
    cosine: float | None = None,
    duplicate_of: str | None = None,
    echo: bool = False,
    tied: float = 0.0,
    text: str = "one two three",
    second: int = 0,
) -> Ranked:
    unit = Unit(name, episode or name, "c", NOW + timedelta(seconds=second), text, (), message_id=f"m-{name}")
    return Ranked(unit, 1, 1.0, (), 1.0, 1.0, coverage, cosine, duplicate_of, echo, tied)


def ids(recalled: tuple[Recalled, ...]) -> list[list[str]]:
    return [[ranked.unit.id for ranked in one.units] for one in recalled]


def count(text: str) -> int:
    return len(text.split())


def test_an_episode_is_listed_once_and_shows_what_was_found_of_it_in_order() -> None:
    found = (result("a2", episode="a", second=5), result("b"), result("a1", episode="a"), result("beyond"))
    assert ids(by_episode(Ranking(found, 0.0), depth=3)) == [["a1", "a2"], ["b"]]


def test_everything_that_is_left_out_says_why() -> None:
    found = (
        result("seen"),
        result("good"),
        result("again", duplicate_of="good"),
        result("far", coverage=0.05, cosine=0.9),
    )
    chosen = select(Ranking(found, 0.0), floor=Floor.of("en"), shown={"m-seen"}, count_tokens=count)
    assert ids(chosen.recalled) == [["good"]]
    assert {one.unit_id: one.reason for one in chosen.excluded} == {
        "seen": "shown in the window",
        "again": "near duplicate of good",
        "far": "below the floor",
    }


def test_what_only_follows_is_admitted_beside_what_is_asked_about() -> None:
    following = (result("little", coverage=0.1), result("tied", coverage=0.0, tied=0.4))
    asked, other = result("asked", coverage=0.5), result("other", coverage=0.0, tied=0.1)
    opened, shut = (
        select(Ranking(found, 0.0), floor=Floor.of("en"), shown=(), count_tokens=count)
        for found in ((*following, asked, other), (*following, other))
    )
    assert [one.episode_id for one in opened.recalled] == ["little", "tied", "asked"]
    assert shut.recalled == ()


def test_a_unit_that_asks_the_same_opens_nothing() -> None:
    found = (result("again", echo=True), result("little", coverage=0.1))
    chosen = select(Ranking(found, 0.0), floor=Floor.of("en"), shown=(), count_tokens=count)
    assert chosen.recalled == ()
    assert {one.unit_id: one.reason for one in chosen.excluded} == {
        "again": "asks the same",
        "little": "below the floor",
    }


def test_where_meaning_is_compared_words_have_to_prove_more() -> None:
    some = Ranking((result("some", coverage=0.45, cosine=0.1), result("tied", coverage=0.0, tied=1.0)), 0.0)
    admitted = [
        ids(select(some, floor=floor, shown=(), count_tokens=count).recalled)
        for floor in (Floor.of("en", 0.4), Floor.of("en", 0.4, own=True), Floor.of("en"))
    ]
    assert admitted == [[], [["some"]], [["some"], ["tied"]]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_less_opens_the_memory_to_a_question_about_the_users_own_affairs(language: Language) -> None:
    some = result("some", coverage=0.27)
    assert Floor.of(language, own=True).admits(some)
    assert not Floor.of(language).admits(some)


def test_a_cosine_admits_where_it_is_believed() -> None:
    far = Ranking((result("far", coverage=0.1, cosine=0.5),), 0.0)
    assert ids(select(far, floor=Floor.of("en", 0.4), shown=(), count_tokens=count).recalled) == [["far"]]
    assert select(far, floor=Floor.of("en", 0.6), shown=(), count_tokens=count).recalled == ()


@pytest.mark.parametrize(
    ("items", "tokens", "kept"), [(1, 300, ["a"]), (5, 5, ["a"]), (5, 6, ["a", "b"]), (5, 0, [])]
)
def test_the_budget_is_kept(items: int, tokens: int, kept: list[str]) -> None:
    found = Ranking((result("a"), result("b")), 0.0)
    chosen = select(found, floor=Floor.of("en"), shown=(), count_tokens=count, max_items=items, max_tokens=tokens)
    assert [one.episode_id for one in chosen.recalled] == kept
    assert {one.reason for one in chosen.excluded} <= {"over the budget"}
    assert len(chosen.excluded) == 2 - len(kept)


def test_of_an_episode_that_is_too_long_the_best_message_is_shown_alone() -> None:
    found = Ranking((result("short", episode="e"), result("long", episode="e", text="word " * 99)), 0.0)
    chosen = select(found, floor=Floor.of("en"), shown=(), count_tokens=count, max_tokens=10)
    assert ids(chosen.recalled) == [["short"]]
    assert [(one.unit_id, one.reason) for one in chosen.excluded] == [("long", "over the budget")]
