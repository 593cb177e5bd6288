from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from services.search.hits import Ranked, Ranking, Unit
from services.search.queries import MessageKind, make_query
from services.search.selection import Floor, Recalled, by_episode, newest_first, select
from services.text.tokenizer import terms

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def result(
    name: str,
    text: str = "",
    *,
    episode: str = "",
    likelihood: float = 0.5,
    states: bool = True,
    sources: frozenset[str] = frozenset(),
    second: int = 0,
) -> Ranked:
    unit = Unit(
        name,
        episode or name,
        NOW + timedelta(seconds=second),
        text or f"one two {name}",
        message_id=None if sources else f"m-{name}",
        states=states,
        sources=sources,
    )
    return Ranked(unit, 1, likelihood, likelihood, 1.0, None, {})


def ids(recalled: tuple[Recalled, ...]) -> list[list[str]]:
    return [[ranked.unit.id for ranked in one.units] for one in recalled]


def _floor(message: str, **about: Any) -> Floor:
    query = make_query(message)
    assert query is not None
    return Floor.of(query, **about)


def _has_words(unit: Unit, others: Sequence[Unit]) -> bool:
    return set(unit.text.split()) <= {word for other in others for word in other.text.split()}


def chosen(*found: Ranked, floor: Floor | None = None, **limits: int) -> tuple[list[list[str]], dict[str, str]]:
    selection = select(
        Ranking(found),
        floor=floor or _floor("It rains in Porto today."),
        shown={"m-shown"},
        covers=_has_words,
        count_tokens=lambda one: sum(len(ranked.unit.text.split()) for ranked in one.units),
        **limits,
    )
    return ids(selection.recalled), {each.unit_id: each.reason for each in selection.excluded}


def test_an_episode_is_listed_once_and_shows_what_was_found_of_it_in_order() -> None:
    found = (result("a2", episode="a", second=5), result("b"), result("a1", episode="a"), result("beyond"))
    assert ids(by_episode(Ranking(found), depth=3)) == [["a1", "a2"], ["b"]]


def test_behind_the_best_a_leg_has_to_speak_for_what_is_shown() -> None:
    silent, far, near = (result(name, likelihood=0.3)._replace(spoken_for=False) for name in ("a", "b", "c"))
    shown, reasons = chosen(silent._replace(likelihood=0.9), far, near._replace(spoken_for=True))
    assert shown == [["a"], ["c"]]
    assert reasons == {"b": "not likely enough"}


def test_everything_that_is_left_out_says_why() -> None:
    shown, reasons = chosen(
        result("best", "I have a dog."),
        result("shown"),
        result("same", "i have a dog"),
        result("asks", "Do I have a dog?", states=False),
        result("far", likelihood=0.02),
    )
    assert shown == [["best"]]
    assert reasons == {
        "shown": "shown in the window",
        "same": "repeats best",
        "asks": "asks or orders something and states nothing",
        "far": "not likely enough",
    }


def test_a_memory_covers_the_messages_that_it_comes_from_unless_they_say_more() -> None:
    memory = result("memory", "has dog bruno", sources=frozenset({"m-said", "m-more"}), likelihood=0.4)
    said, more = result("said", "dog bruno", likelihood=0.6), result("more", "dog bruno bites", likelihood=0.5)
    shown, reasons = chosen(said, memory, more, result("other"))
    assert shown == [["more"], ["other"], ["memory"]]
    assert reasons == {"said": "in the memory memory"}


def test_what_a_newer_unit_says_is_shown_once_and_what_a_newer_one_changes_twice() -> None:
    new = result("new", "we eat fish on friday", likelihood=0.6, second=60)
    assert chosen(new, result("old", "we eat fish")) == ([["new"]], {"old": "repeats new"})
    later = result("later", "we eat fish", second=90)
    assert chosen(new, later)[0] == [["new"], ["later"]]


def test_the_likeliest_stands_first_and_what_follows_four_must_be_likelier() -> None:
    found = [result(f"u{place}", likelihood=0.05 * place) for place in range(1, 5)]
    low = result("low", likelihood=0.015)
    shown, reasons = chosen(*found, low)
    assert shown == [["u4"], ["u3"], ["u2"], ["u1"]]
    assert reasons == {"low": "not likely enough"}
    assert chosen(low, found[3])[0] == [["u4"], ["low"]]


def test_nothing_is_shown_where_nothing_is_likely_but_what_was_said_at_the_time_asked_for() -> None:
    found = (result("then", likelihood=0.01, second=5), result("later", likelihood=0.02, second=50))
    assert chosen(*found)[0] == []
    asked = _floor("It rains in Porto today.", then=(NOW, NOW + timedelta(seconds=10)))
    assert chosen(*found, floor=asked)[0] == [["then"]]


def test_an_order_that_leaves_no_choice_needs_more() -> None:
    found = result("b", likelihood=0.06)
    poem = "Write a poem about rain."
    assert chosen(found, floor=_floor(poem))[0] == []
    assert chosen(found, floor=_floor(poem, kind=MessageKind(choice=0.4, nothing=0.3)))[0] == []
    assert chosen(found, floor=_floor(poem, kind=MessageKind(choice=0.6, nothing=0.3)))[0] == [["b"]]


def test_items_and_tokens_are_limited_and_a_shorter_one_may_still_fit() -> None:
    long = result("long", "far " * 50)
    found = (result("a"), long, result("b"), result("c"))
    assert chosen(*found, max_tokens=9)[0] == [["a"], ["b"], ["c"]]
    assert chosen(*found, max_items=2)[0] == [["a"], ["long"]]


def test_of_several_versions_the_newest_stands_first() -> None:
    old = result("old", "The office is on Mill Lane.", likelihood=0.9)
    new = result("new", "The office is on Harbour Road.", likelihood=0.8, second=60)
    ordered = newest_first((old, result("other"), new), terms("Where is the office?"))
    assert [ranked.unit.id for ranked in ordered] == ["new", "other", "old"]
    assert ordered[0].likelihood == 0.9
