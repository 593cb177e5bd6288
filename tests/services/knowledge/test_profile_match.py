import pytest

from services.knowledge.base import BaseProfile
from services.knowledge.profile_match import Hit, Profiles, ends_of

COFFEE = BaseProfile(
    "coffee",
    "Manual of the Brevo coffee machine",
    keywords=("Brevo", "descale", "grinder", "steam wand", "warranty"),
    questions=("How do I froth milk?",),
    headings=("Water hardness",),
)
HANDBOOK = BaseProfile(
    "handbook", "员工手册", keywords=("年假", "报销", "試用期", "warranty"), questions=("加班怎么调休？",)
)


def keywords(message: str) -> dict[str, tuple[str, ...]]:
    hits = Profiles([COFFEE, HANDBOOK]).compare(message)
    return {prefix: hit.keywords for prefix, hit in hits.items() if hit.keywords}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("How do I descale the BREVO?", {"coffee": ("descale", "Brevo")}),
        ("My grinders are loud", {"coffee": ("grinder",)}),
        ("the steam wand drips", {"coffee": ("steam wand",)}),
        ("Ｂｒｅｖｏ怎么用", {"coffee": ("Brevo",)}),
        ("bravo! Brevota, steam engine", {}),
        ("has it been descaled?", {"coffee": ("descale",)}),
        ("the wand of the steam drips", {"coffee": ("steam wand",)}),
        ("我的年假还有几天", {"handbook": ("年假",)}),
        ("試用期多長", {"handbook": ("試用期",)}),
        ("试用期多长", {"handbook": ("試用期",)}),
        ("明年放假", {}),
        ("", {}),
    ],
)
def test_keywords_are_whole_words_in_any_writing(message: str, found: dict[str, tuple[str, ...]]) -> None:
    assert keywords(message) == found


def test_a_keyword_of_two_bases_counts_half_for_each() -> None:
    hits = Profiles([COFFEE, HANDBOOK]).compare("Is there a warranty?")
    assert [hit.weight for hit in hits.values()] == [0.5, 0.5]


def test_of_overlapping_keywords_the_longest_counts() -> None:
    base = BaseProfile("b", "", keywords=("brew", "brew group", "group therapy"))
    assert Profiles([base]).compare("the brew group")["b"].keywords == ("brew group",)


@pytest.mark.parametrize(
    ("message", "share", "words"),
    [
        ("How hard is the water?", 1.0, 2),
        ("Does it froth cream?", 0.5, 1),
        ("Is milk frothed by hand?", 1.0, 2),
        ("What is the time?", 0.0, 0),
    ],
)
def test_headings_and_example_questions_are_found_in_any_order(message: str, share: float, words: int) -> None:
    hit = Profiles([COFFEE, HANDBOOK]).compare(message).get("coffee", Hit())
    assert (hit.heading, hit.heading_words) == (share, words)


def test_a_base_with_nothing_of_the_message_is_left_out() -> None:
    assert Profiles([COFFEE, HANDBOOK]).compare("the of and") == {}


def test_a_base_is_found_by_its_prefix() -> None:
    profiles = Profiles([COFFEE, HANDBOOK])
    assert profiles.get("handbook") is HANDBOOK
    assert profiles.get("garden") is None


def test_of_a_long_message_both_ends_are_looked_at() -> None:
    long = "descale? " + "filler " * 5_000 + "and my grinder?"
    assert len(ends_of(long)) < 1_300
    assert keywords(long) == {"coffee": ("descale", "grinder")}
    assert ends_of("short") == "short"
