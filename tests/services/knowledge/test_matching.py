import pytest

from services.knowledge.matching import Profiles, ends_of
from services.knowledge.profile import BaseProfile

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
    return {hit.profile.prefix: hit.keywords for hit in hits if hit.keywords}


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("How do I descale the BREVO?", {"coffee": ("descale", "Brevo")}),
        ("My grinders are loud", {"coffee": ("grinder",)}),
        ("the steam wand drips", {"coffee": ("steam wand",)}),
        ("Ｂｒｅｖｏ怎么用", {"coffee": ("Brevo",)}),
        ("bravo! Brevota, descaled, steam a wand", {}),
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
    assert [hit.weight for hit in hits] == [0.5, 0.5]


def test_of_overlapping_keywords_the_longest_counts() -> None:
    base = BaseProfile("b", "", keywords=("brew", "brew group", "group therapy"))
    assert Profiles([base]).compare("clean the brew group therapy")[0].keywords == ("brew group",)


def test_coverage_is_the_share_of_what_the_message_is_about() -> None:
    coffee, handbook = Profiles([COFFEE, HANDBOOK]).compare(
        "Which water hardness does the machine like in winter?"
    )
    assert coffee.coverage == pytest.approx(3 / 4)  # water, hardness, machine; not winter
    assert handbook.coverage == 0
    assert [hit.coverage for hit in Profiles([COFFEE]).compare("the of and")] == [0]


def test_a_base_is_found_by_its_prefix() -> None:
    profiles = Profiles([COFFEE, HANDBOOK])
    assert profiles.get("handbook") is HANDBOOK
    assert profiles.get("garden") is None


def test_of_a_long_message_both_ends_are_looked_at() -> None:
    long = "descale? " + "filler " * 5_000 + "and my grinder?"
    assert len(ends_of(long)) < 1_300
    assert keywords(long) == {"coffee": ("descale", "grinder")}
    assert ends_of("short") == "short"
