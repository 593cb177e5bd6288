"""What rules make of messages without a model: plain statements, filed item by item, and nothing else."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.facts_stated.__main__ import FOLDER, measure
from services.memory.agent.decisions import dated
from services.memory.agent.fact import Fact
from services.memory.agent.fact_filing import plan_of_facts
from services.memory.agent.facts import facts_of
from services.memory.agent.plan import HUMAN, CoreChange, NewMemory, Plan, is_known, settled
from services.memory.items import apply_changes


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_the_collected_statements_are_read_as_before(language: str) -> None:
    figures = measure(FOLDER / f"{language}.txt")
    assert figures.messages >= 300
    assert figures.precision >= 0.97
    assert figures.recall >= 0.95


@pytest.mark.parametrize(
    ("message", "filed"),
    [
        ("I live in Berlin and I work at Siemens.", ["home: lives in Berlin", "work: works at Siemens"]),
        (
            "I'm allergic to peanuts, shellfish and cats",
            ["allergies: peanuts", "allergies: shellfish", "allergies: cats"],
        ),
        ("I'm allergic to pollen and to bee stings.", ["allergies: pollen", "allergies: bee stings"]),
        ("We moved to Cardiff at the weekend, with the cat.", ["home: lives in Cardiff"]),
        ("I started a new job at the Royal Library.", ["work: works at the Royal Library"]),
        ("I joined the choir.", []),
        ("My name is Anna Schmidt, but call me Ann.", ["name: Anna Schmidt", "preferred_name: Ann"]),
        ("我现在不喜欢恐怖片了，喜欢喜剧", ["preferences: 不喜欢恐怖片", "preferences: 喜欢喜剧"]),
        ("我叫王小明，你可以叫我小王", ["name: 王小明", "preferred_name: 小王"]),
        ("我上個月搬到新加坡了", ["home: 住在新加坡"]),
        ("我養了一隻貓，叫雪球", ["pets: 養一隻貓叫雪球"]),
        (
            "My eye test is on the 4th of March at 9:15 with Dr. Osei.",
            ["plans: eye test on the 4th of March at 9:15 with Dr. Osei"],
        ),
    ],
)
def test_a_message_may_state_several_facts(message: str, filed: list[str]) -> None:
    assert [f"{fact.field}: {fact.text}" for fact in facts_of(message)] == filed


TODAY = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _filed(human: dict[str, Any], *messages: str, with_dates: bool = False) -> dict[str, Any]:
    """A section after messages of today, each filed as the agent does it, perhaps without their dates."""
    for message in messages:
        for found in plan_of_facts(facts_of(message), {HUMAN: human}, has_core=True):
            planned = dated(found, TODAY, "UTC") if with_dates else found
            if isinstance(planned, CoreChange) and not is_known(planned, human):
                changes = [change.as_item_change() for change in settled(planned, human, TODAY.date())]
                human = apply_changes(human, changes).content
    return human


@pytest.mark.parametrize(
    ("human", "messages", "then"),
    [
        ({}, ["I work at Zephyr until June."], {"work": "works at Zephyr (until 2027-06)"}),
        ({}, ["I've been vegan since last year."], {"diet": ["vegan (since 2025)"]}),
        ({"home": "lives in Ghent"}, ["I used to live in Bergen."],
         {"home": "lives in Ghent", "facts": ["lives in Bergen (formerly)"]}),
        ({"home": "lives in Ghent"}, ["I used to live in Ghent."], {"facts": ["lives in Ghent (formerly)"]}),
        ({"home": "lives in Ghent"}, ["I lived in Bergen from 2011 to 2014."],
         {"home": "lives in Ghent", "facts": ["lives in Bergen (2011 to 2014)"]}),
        ({"work": "works at Zephyr"}, ["From next month I work at Borealis."],
         {"work": "works at Zephyr", "plans": ["works at Borealis (from 2026-12)"]}),
        ({"facts": ["lives in Bergen (formerly)"]}, ["I live in Ghent."],
         {"facts": ["lives in Bergen (formerly)"], "home": "lives in Ghent"}),
        ({"preferences": ["likes tea"]}, ["I used to like tea."], {"preferences": ["no longer likes tea"]}),
        ({"allergies": ["nuts"]}, ["I'm allergic to nuts since last summer."],
         {"allergies": ["nuts (since 2026-06)"]}),
        ({}, ["I've been working at Zephyr since 2019."], {"work": "works at Zephyr (since 2019)"}),
        ({}, ["I like the film Dune (2021)."], {"preferences": ["likes the film Dune"]}),
        ({}, ["到六月为止我住在根特。"], {"home": "住在根特（到2027-06为止）"}),
        ({}, ["我住在根特，直到明年三月。"], {"home": "住在根特（到2027-03为止）"}),
        ({"work": "在海风上班"}, ["从去年起我在北极光工作。"], {"work": "在北极光工作（2025起）"}),
        ({"home": "住在根特"}, ["我以前住在卑尔根。"], {"home": "住在根特", "facts": ["住在卑尔根（以前）"]}),
        ({"work": "在海风工作"}, ["从下个月起，我在北极光工作。"],
         {"work": "在海风工作", "plans": ["在北极光工作（2026-12起）"]}),
        ({"preferences": ["喜欢喝咖啡"]}, ["我以前喜欢喝咖啡。"], {"preferences": ["喜欢喝咖啡（以前）"]}),
        ({"hobbies": ["plays the oboe"]}, ["I gave up the oboe."], {"hobbies": ["plays the oboe (formerly)"]}),
        ({"hobbies": ["plays tennis"]}, ["I don't play tennis any more."],
         {"hobbies": ["plays tennis (formerly)"]}),
        ({}, ["I was playing the tuba till 2019."], {"hobbies": ["plays the tuba (until 2019)"]}),
        ({}, ["We had two cats when I was a kid."], {"pets": ["has two cats (formerly)"]}),
        ({}, ["I live in Ghent, used to live in Bergen."],
         {"home": "lives in Ghent", "facts": ["lives in Bergen (formerly)"]}),
        ({}, ["living in Bergen since 2019 and still can't handle the rain"],
         {"home": "lives in Bergen (since 2019)"}),
        ({}, ["Living in Bergen is expensive."], {}),
        ({}, ["used to play the tuba"], {"hobbies": ["plays the tuba (formerly)"]}),
        ({}, ["I've had a dog since I was a child."], {"pets": ["has a dog"]}),
        ({}, ["我住在根特，以前住在卑尔根。"], {"home": "住在根特", "facts": ["住在卑尔根（以前）"]}),
        ({"hobbies": ["吹双簧管"]}, ["我不吹双簧管了。"], {"hobbies": ["吹双簧管（以前）"]}),
        ({}, ["我学过三年二胡。"], {"hobbies": ["在学二胡（以前）"]}),
        ({}, ["我小时候养过两只兔子。"], {"pets": ["养两只兔子（以前）"]}),
        ({}, ["我没养过兔子。"], {}),
        ({}, ["前年之前我一直在海风上班。"], {"facts": ["在海风工作（到2023为止）"]}),
        ({}, ["自从去年我就住在根特。"], {"home": "住在根特（2025起）"}),
        ({}, ["我今天打网球。"], {}),
    ],
)  # fmt: skip
def test_a_fact_says_when_it_holds_and_displaces_nothing_that_holds_now(
    human: dict[str, Any], messages: list[str], then: dict[str, Any]
) -> None:
    assert _filed(human, *messages, with_dates=True) == then


@pytest.mark.parametrize(
    ("human", "messages", "then"),
    [
        ({}, ["我喜欢看恐怖片", "我现在不喜欢恐怖片了，喜欢喜剧"], {"preferences": ["不喜欢恐怖片", "喜欢喜剧"]}),
        ({}, ["我爱吃辣", "我不吃辣了"], {"preferences": ["不吃辣"]}),
        ({}, ["I love horror films.", "Actually I've gone off horror films, they give me nightmares."],
         {"preferences": ["no longer likes horror films"]}),
        ({}, ["I live in Berlin.", "I moved from Berlin to Lisbon."], {"home": "lives in Lisbon"}),
        ({"notes": ["likes horror films"]}, ["I hate horror films"], {"notes": ["hates horror films"]}),
        ({"residence": "lives in Berlin"}, ["I moved to Lisbon."], {"residence": "lives in Lisbon"}),
        ({"home": "lives in Lisbon"}, ["I no longer live in Berlin"], {"home": "lives in Lisbon"}),
        ({"home": "lives in Berlin"}, ["I no longer live in Berlin"], {"home": "no longer lives in Berlin"}),
        ({"preferences": ["likes tea"]}, ["I like tea"], {"preferences": ["likes tea"]}),
        ({"allergies": ["nuts"]}, ["I'm allergic to cats"], {"allergies": ["nuts", "cats"]}),
        ({"allergies": ["penicillin", "nuts"]}, ["I'm not allergic to penicillin after all."],
         {"allergies": ["nuts"]}),
        ({"allergies": ["青霉素", "芒果"]}, ["我对青霉素不过敏"], {"allergies": ["芒果"]}),
        ({"allergies": ["nuts"]}, ["I'm not allergic to bees."], {"allergies": ["nuts"]}),
        ({"work": "works at Lund & Co"}, ["I start at Polar on Monday; my last day at Lund & Co was Friday."],
         {"work": "works at Polar on Monday"}),
        ({}, ["My son is 7.", "My son is 9 years old."], {"family": ["son is 9 years old"]}),
        ({}, ["我儿子7岁", "我儿子9岁了"], {"family": ["儿子9岁"]}),
        ({}, ["Call me Lex.", "Please call me Alexandra."], {"preferred_name": "Alexandra"}),
    ],
)  # fmt: skip
def test_the_newer_takes_the_place_of_what_it_contradicts(
    human: dict[str, Any], messages: list[str], then: dict[str, Any]
) -> None:
    assert _filed(human, *messages) == then


def test_without_core_memory_all_are_episodes() -> None:
    facts = facts_of("I like tea. I live in Berlin. My name is Ann. I'm not allergic to bees.") + facts_of(
        "我对花生过敏"
    )
    plan: Plan = plan_of_facts(facts, {}, has_core=False)
    assert [(each.episode_type, each.content) for each in plan if isinstance(each, NewMemory)] == [
        ("preference", "The user likes tea."),
        ("context", "The user lives in Berlin."),
        ("context", "The user is called Ann."),
        ("context", "用户对花生过敏。"),
    ]


def test_no_message_causes_more_than_eight_operations() -> None:
    facts = [Fact("decision", f"The user has decided to do {number}.") for number in range(20)]
    assert len(plan_of_facts(facts, {}, has_core=True)) == 8


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert len(facts_of(text)) <= 8
