"""The obvious cases, without a model."""

import pytest

from services.memory.agent_plan import CoreChange, NewMemory, plan_of_findings
from services.memory.agent_rules import Finding, findings
from services.memory.contradictions import claim_of
from services.memory.merge import merge_patch


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("I like horror films.", ["preferences: likes horror films"]),
        ("I really LOVE long walks, because they calm me", ["preferences: loves long walks"]),
        (
            "I no longer like horror films, I prefer comedies now.",
            ["preferences: no longer likes horror films", "preferences: prefers comedies"],
        ),
        ("I don't like horror films any more.", ["preferences: no longer likes horror films"]),
        ("I don't like crowds", ["preferences: does not like crowds"]),
        ("I hate mornings", ["preferences: hates mornings"]),
        ("I used to like sushi", ["preferences: no longer likes sushi"]),
        ("My name is Anna Schmidt, but call me Ann.", ["name: Ann"]),
        ("I live in Berlin and I work at Siemens.", ["home: lives in Berlin", "work: works at Siemens"]),
        ("By the way, I moved from Berlin to Lisbon last month.", ["home: lives in Lisbon"]),
        ("I just moved to New York for work", ["home: lives in New York"]),
        ("I don't live in Berlin any more", ["home: no longer lives in Berlin"]),
        ("I work as a nurse.", ["work: works as a nurse"]),
        (
            "I'm allergic to peanuts, shellfish and cats",
            ["allergies: peanuts", "allergies: shellfish", "allergies: cats"],
        ),
        ("I'm allergic to peanuts and cats", ["allergies: peanuts", "allergies: cats"]),
        ("I have decided to quit my job.", ["decision: The user has decided to quit their job."]),
        ("我喜欢看恐怖片", ["preferences: 喜欢看恐怖片"]),
        ("我现在不喜欢恐怖片了，喜欢喜剧", ["preferences: 不喜欢恐怖片", "preferences: 喜欢喜剧"]),
        ("我讨厌香菜", ["preferences: 讨厌香菜"]),
        ("我也不太喜欢吃辣", ["preferences: 不太喜欢吃辣"]),
        ("我叫王小明，你可以叫我小王", ["name: 小王"]),
        ("以后叫我阿杰就行", ["name: 阿杰"]),
        ("我住在杭州，在华为工作", ["home: 住在杭州", "work: 在华为工作"]),
        ("我从柏林搬到了里斯本", ["home: 住在里斯本"]),
        ("我上个月搬到新加坡了", ["home: 住在新加坡"]),
        ("我不住在柏林了", ["home: 不再住在柏林"]),
        ("我在华为工作", ["work: 在华为工作"]),
        ("我是一名中学老师", ["work: 是一名中学老师"]),
        ("我对花生和海鲜过敏", ["allergies: 花生", "allergies: 海鲜"]),
        ("我决定明年去日本读研", ["decision: 用户决定明年去日本读研。"]),
        ("请记住我喜欢喝龙井茶。", ["preferences: 喜欢喝龙井茶"]),
    ],
)
def test_the_obvious_is_found(message: str, found: list[str]) -> None:
    assert [f"{each.field}: {each.text}" for each in findings(message)] == found


@pytest.mark.parametrize(
    "message",
    [
        "Do I like tea?",
        "I like it.",
        "I like that idea, thanks",
        "I love you",
        "My sister lives in Rome.",
        "If I moved to Spain, would I like it?",
        "I used to live in Rome",
        "I moved to the next chapter",
        "Call me later",
        "I live in the past",
        "Translate: I love horror films",
        'What does "I live in Berlin" mean?',
        "我喜欢恐怖片吗？",
        "我不喜欢你",
        "我喜欢这个回答",
        "我朋友喜欢恐怖片，不喜欢喜剧",
        "我妈妈住在杭州",
        "我以前喜欢恐怖片",
        "假如我搬到西班牙，我会喜欢那里",
        "我叫了外卖",
        "把“我住在柏林”翻译成英文",
        "我搬到新家了",
    ],
)
def test_what_is_not_said_of_oneself_is_not_found(message: str) -> None:
    assert findings(message) == []


def _filed(human: dict[str, object], *messages: str) -> dict[str, object]:
    for message in messages:
        for planned in plan_of_findings(findings(message), human, core=True):
            if isinstance(planned, CoreChange):
                human = merge_patch(human, planned.patch)
    return human


@pytest.mark.parametrize(
    ("human", "messages", "then"),
    [
        ({}, ["我喜欢看恐怖片", "我现在不喜欢恐怖片了，喜欢喜剧"], {"preferences": ["不喜欢恐怖片", "喜欢喜剧"]}),
        ({}, ["I live in Berlin.", "I moved from Berlin to Lisbon."], {"home": "lives in Lisbon"}),
        ({"notes": ["likes horror films"]}, ["I hate horror films"], {"notes": ["hates horror films"]}),
        ({"residence": "lives in Berlin"}, ["I moved to Lisbon."], {"residence": "lives in Lisbon"}),
        ({"home": "lives in Lisbon"}, ["I no longer live in Berlin"], {"home": "lives in Lisbon"}),
        ({"home": "lives in Berlin"}, ["I no longer live in Berlin"], {"home": "no longer lives in Berlin"}),
        ({"preferences": ["likes tea"]}, ["I like tea"], {"preferences": ["likes tea"]}),
        ({"allergies": ["nuts"]}, ["I'm allergic to cats"], {"allergies": ["nuts", "cats"]}),
    ],
)
def test_the_newer_takes_the_place_of_what_it_contradicts(
    human: dict[str, object], messages: list[str], then: dict[str, object]
) -> None:
    assert _filed(human, *messages) == then


def test_without_core_memory_all_are_episodes() -> None:
    plan = plan_of_findings(findings("I like tea. I live in Berlin. My name is Ann. 我对花生过敏"), {}, core=False)
    assert [(each.episode_type, each.content) for each in plan if isinstance(each, NewMemory)] == [
        ("preference", "The user likes tea."),
        ("context", "The user lives in Berlin."),
        ("context", "The user is called Ann."),
        ("context", "用户对花生过敏。"),
    ]


def test_no_message_causes_more_than_eight_operations() -> None:
    found = [Finding("decision", f"The user has decided to do {number}.") for number in range(20)]
    assert len(plan_of_findings(found, {}, core=True)) == 8


@pytest.mark.parametrize(
    ("newer", "older", "replaces"),
    [
        ("我现在不喜欢恐怖片了", "我喜欢看恐怖片", True),
        ("no longer likes horror films", "likes watching horror films", True),
        ("I moved from Berlin to Lisbon", "I live in Berlin", True),
        ("我上个月从柏林搬到里斯本了", "我住在柏林", True),
        ("likes reading", "likes playing", False),
        ("我父母从柏林搬到了里斯本", "我住在柏林", False),
    ],
)
def test_what_one_does_and_where_one_comes_from_does_not_hide_what_it_is_about(
    newer: str, older: str, replaces: bool
) -> None:
    assert claim_of(newer).contradicts(claim_of(older)) == replaces
