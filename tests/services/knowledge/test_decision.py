import pytest

from services.knowledge.base import BaseProfile
from services.knowledge.decision import by_closeness, by_profile
from services.knowledge.evidence import Evidence
from services.knowledge.likelihood import Closeness
from services.knowledge.message_intent import MessageIntent, manner_of, views_of
from services.knowledge.profile_match import Profiles
from services.text.concepts import concepts
from services.text.tokenizer import terms

DESK = BaseProfile("desk", "Help desk", ("VPN", "badge"), headings=("Devices > Lost laptop", "Devices > Printers"))
CLUB = BaseProfile("club", "网球俱乐部会员手册", ("会费", "场地"), headings=("停卡与转让", "场地预约"))
PROFILES = Profiles([DESK, CLUB])


def passage(prefix: str, text: str) -> Evidence:
    return Evidence(prefix, tuple(terms(text)), concepts(text))


def by_rules(message: str, profiles: Profiles = PROFILES) -> str | None:
    manner = manner_of(message)
    found = by_profile(profiles, views_of(message, manner), manner)
    return found.profile.prefix if found else None


def near(message: str, *passages: Evidence, believed: bool = False, **cosines: float) -> list[str]:
    manner = manner_of(message)
    found = by_closeness(PROFILES, views_of(message, manner), manner, Closeness(cosines, 0.2, believed, passages))
    return [found.profile.prefix, *(other.prefix for other in found.also)] if found else []


@pytest.mark.parametrize(
    ("message", "prefix"),
    [
        ("VPN怎么开通", "desk"),
        ("Hello, could you tell me how I get a badge please?", "desk"),
        ("我好着急，下周就要比赛了，会费能晚点交吗？", "club"),
        ("請問場地怎麼訂", "club"),
        ("I lost my badge", None),
        ("I wore my badge all day and felt proud", None),
        ("Write a slogan about our VPN", None),
        ("Do you remember when I got my badge?", None),
        ("How tall is the Eiffel Tower?", None),
    ],
)
def test_a_keyword_in_a_question_decides_by_rules_alone(message: str, prefix: str | None) -> None:
    assert by_rules(message) == prefix


def test_a_keyword_of_two_bases_leaves_the_decision_to_the_documents() -> None:
    other = BaseProfile("gate", "Gate", ("badge",))
    assert by_rules("Where do I get a badge?", Profiles([DESK, other])) is None


@pytest.mark.parametrize(
    "message", ["What should I do if I lose my laptop?", "My laptop was lost on a train, what now?", "laptop lost"]
)
def test_a_heading_is_found_in_another_order_and_inflection(message: str) -> None:
    assert near(message, passage("desk", "Devices Lost laptop: Report it at once.")) == ["desk"]


def test_a_passage_counts_by_how_much_of_the_question_it_speaks_of() -> None:
    rackets = passage("club", "Rackets are restrung within two days at the front office.")
    assert near("When is a racket restrung?", rackets) == ["club"]
    assert near("How long does a racket survive in salty water near volcanoes?", rackets) == []
    assert near("Why were rackets invented in France?", rackets) == []
    assert near("I bought two rackets in France with my sister", rackets) == []


def test_several_bases_may_contribute() -> None:
    club = passage("club", "Lockers are emptied every night.")
    desk = passage("desk", "Lockers for devices are emptied on Fridays.")
    assert set(near("When are the lockers emptied?", club, desk)) == {"club", "desk"}
    assert near("When are the lockers for devices emptied?", passage("club", "Lockers."), desk)[0] == "desk"


@pytest.mark.parametrize(
    ("cosine", "believed", "found"), [(0.7, True, ["desk"]), (0.7, False, []), (0.3, True, [])]
)
def test_meaning_decides_by_itself_where_the_embedding_is_believed(
    cosine: float, believed: bool, found: list[str]
) -> None:
    assert near("Wie bekomme ich Zugang?", believed=believed, desk=cosine, club=0.1) == found


def test_without_bases_there_is_nothing_to_decide() -> None:
    nothing = Profiles([])
    assert by_profile(nothing, ["How do I get a VPN?"], MessageIntent.SERVICE) is None
    assert by_closeness(nothing, ["How do I get a VPN?"], MessageIntent.SERVICE, Closeness()) is None
