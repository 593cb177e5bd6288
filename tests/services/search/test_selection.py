from datetime import UTC, datetime, timedelta

import pytest

from services.search.hits import Ranked, Ranking, Unit
from services.search.selection import Floor, Recalled, by_episode, select
from services.text.features import Feature

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def result(
    name: str,
    *,
    episode: str = "",
    likelihood: float = 0.5,
    score: float = 1.0,
    cosine: float | None = None,
    duplicate_of: str | None = None,
    echo: bool = False,
    version_of: str | None = None,
    features: tuple[Feature, ...] = ("states",),
    by_assistant: bool = False,
    sources: frozenset[str] | None = None,
    text: str = "one two three",
    second: int = 0,
) -> Ranked:
    unit = Unit(
        name,
        episode or name,
        "c",
        NOW + timedelta(seconds=second),
        text,
        (),
        message_id=None if sources else f"m-{name}",
        by_assistant=by_assistant,
        features=frozenset(features),
        sources=sources or frozenset(),
    )
    return Ranked(unit, 1, score, (), 1.0, 1.0, 1.0, 1.0, likelihood, cosine, duplicate_of, version_of, echo)


QUESTION = Floor.of()


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
        result("far", likelihood=0.01, cosine=0.9),
    )
    chosen = select(Ranking(found, 0.0), floor=QUESTION, shown={"m-seen"}, count_tokens=count)
    assert ids(chosen.recalled) == [["good"]]
    assert {one.unit_id: one.reason for one in chosen.excluded} == {
        "seen": "shown in the window",
        "again": "near duplicate of good",
        "far": "not likely enough",
    }


def chosen_of(*found: Ranked, floor: Floor = QUESTION) -> list[str]:
    selection = select(Ranking(found, 0.0), floor=floor, shown=(), count_tokens=count)
    return [one.best.unit.id for one in selection.recalled]


def test_what_is_likely_is_shown_and_others_only_if_they_come_close() -> None:
    assert chosen_of(result("first", likelihood=0.5), result("close", likelihood=0.3)) == ["first", "close"]
    assert chosen_of(result("first", likelihood=0.8), result("far", likelihood=0.12)) == ["first"]
    assert chosen_of(result("first", likelihood=0.03), result("close", likelihood=0.02)) == []


def test_a_little_less_is_asked_of_what_stands_beside_something_likely() -> None:
    less = result("less", likelihood=0.08)
    assert chosen_of(less) == []
    assert chosen_of(result("likely", likelihood=0.2), less, result("too little", likelihood=0.06)) == [
        "likely",
        "less",
    ]


def test_the_likelier_is_shown_first_and_of_equal_ones_the_better_placed() -> None:
    assert chosen_of(result("second", likelihood=0.4), result("first", likelihood=0.5)) == ["first", "second"]
    assert chosen_of(result("first"), result("second")) == ["first", "second"]


def test_more_is_asked_where_a_message_says_nothing_of_its_user() -> None:
    some = result("some", likelihood=0.15)
    assert chosen_of(some) == ["some"]
    assert chosen_of(some, floor=Floor.of(of_nobody=True)) == []


def test_less_is_asked_of_what_a_message_about_the_past_may_mean() -> None:
    some = result("some", likelihood=0.07)
    assert chosen_of(some) == []
    assert chosen_of(some, floor=Floor.of(about_past=True)) == ["some"]


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        (result("again", echo=True), "asks the same"),
        (result("order", features=()), "asks or orders something and states nothing"),
    ],
)
def test_questions_and_orders_of_the_user_are_never_shown_alone(unit: Ranked, reason: str) -> None:
    chosen = select(Ranking((unit,), 0.0), floor=QUESTION, shown=(), count_tokens=count)
    assert chosen.recalled == ()
    assert [one.reason for one in chosen.excluded] == [reason]


def test_the_newer_version_of_a_fact_comes_first_and_the_older_never_alone() -> None:
    older, newer = result("older", likelihood=0.5, version_of="newer"), result("newer", likelihood=0.3)
    assert chosen_of(older, newer) == ["newer", "older"]


def test_a_memory_stands_for_the_turn_that_it_was_written_from() -> None:
    memory, turn = result("memory", sources=frozenset({"m-turn", "m-answer"})), result("turn", likelihood=0.4)
    chosen = select(Ranking((memory, turn), 0.0), floor=QUESTION, shown=(), count_tokens=count)
    assert ids(chosen.recalled) == [["memory"]]
    assert [one.reason for one in chosen.excluded] == ["in the memory memory"]


def test_a_cosine_admits_where_it_is_believed() -> None:
    far = Ranking((result("far", likelihood=0.01, cosine=0.5),), 0.0)
    assert ids(select(far, floor=Floor.of(cosine=0.4), shown=(), count_tokens=count).recalled) == [["far"]]
    assert select(far, floor=Floor.of(cosine=0.6), shown=(), count_tokens=count).recalled == ()


@pytest.mark.parametrize(
    ("items", "tokens", "kept"), [(1, 300, ["a"]), (5, 5, ["a"]), (5, 6, ["a", "b"]), (5, 0, [])]
)
def test_the_budget_is_kept(items: int, tokens: int, kept: list[str]) -> None:
    found = Ranking((result("a"), result("b")), 0.0)
    chosen = select(found, floor=QUESTION, shown=(), count_tokens=count, max_items=items, max_tokens=tokens)
    assert [one.episode_id for one in chosen.recalled] == kept
    assert {one.reason for one in chosen.excluded} <= {"over the budget"}
    assert len(chosen.excluded) == 2 - len(kept)


def test_of_an_episode_that_is_too_long_the_best_message_is_shown_alone() -> None:
    found = Ranking((result("short", episode="e"), result("long", episode="e", text="word " * 99)), 0.0)
    chosen = select(found, floor=QUESTION, shown=(), count_tokens=count, max_tokens=10)
    assert ids(chosen.recalled) == [["short"]]
    assert [(one.unit_id, one.reason) for one in chosen.excluded] == [("long", "over the budget")]
