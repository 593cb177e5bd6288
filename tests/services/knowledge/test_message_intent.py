from datetime import UTC, datetime

import pytest

from services.knowledge.message_intent import Manner, followed, manner_of, views_of
from state.prompt import HistoryMessage


def said(role: str, content: str) -> HistoryMessage:
    return HistoryMessage(
        message_id="m",
        role=role,  # type: ignore[typeddict-item]
        content=content,
        parts=[],
        token_count=1,
        created_at=datetime.now(UTC),
    )


HISTORY = [said("user", "Older"), said("user", "How many days of leave?"), said("assistant", "Thirty.")]


@pytest.mark.parametrize(
    "message",
    [
        "And when do they expire?",
        "what about sick leave?",
        "Is there a form for it?",
        "那病假呢？",
        "它多久要换？",
    ],
)
def test_a_message_that_names_little_itself_goes_on_from_the_one_before(message: str) -> None:
    assert followed(message, HISTORY) == "How many days of leave?"
    assert followed(message, []) is None


@pytest.mark.parametrize(
    "message",
    [
        "When does the greenhouse open?",
        "And I also wanted to tell you about my sister's wedding in Lisbon last summer, it was lovely",
        "植物园几点关门",
        "那我想给家里的阳台种一些玫瑰和月季，你觉得呢",
        "",
    ],
)
def test_one_that_says_what_it_is_about_stands_by_itself(message: str) -> None:
    assert followed(message, HISTORY) is None


@pytest.mark.parametrize(
    ("message", "manner"),
    [
        ("How do I renew my card?", Manner.SERVICE),
        ("renewal fee", Manner.SERVICE),
        ("May I bring a guest on Sundays", Manner.SERVICE),
        ("I'm so upset, my parcel is gone. Where do I complain?", Manner.SERVICE),
        ("卡丢了怎么补", Manner.SERVICE),
        ("補辦流程", Manner.SERVICE),
        ("真的急死了，周日能不能带朋友进去", Manner.SERVICE),
        ("The turnstile on the second floor does not open", Manner.TROUBLE),
        ("门禁刷不了", Manner.SERVICE),
        ("我的门禁卡刷了三次还是没反应，一直报错", Manner.TROUBLE),
        ("Why is the sky blue?", Manner.QUESTION),
        ("光合作用的原理是什么", Manner.QUESTION),
        ("I went to the pool with my brother", Manner.TOLD),
        ("我今天和朋友去游泳了，特别开心", Manner.TOLD),
        ("Write a poem about a lost parcel", Manner.ELSEWHERE),
        ("帮我写一封投诉信", Manner.ELSEWHERE),
        ("Do you remember which card I have?", Manner.ELSEWHERE),
        ("我上次说的会员号是多少来着", Manner.ELSEWHERE),
    ],
)
def test_what_a_message_wants(message: str, manner: Manner) -> None:
    assert manner_of(message) is manner


def test_the_clause_that_asks_is_looked_at_by_itself() -> None:
    message = "I am so tired today and everything hurts, how do I cancel the swimming course?"
    assert views_of(message, manner_of(message)) == [message, "how do I cancel the swimming course"]
