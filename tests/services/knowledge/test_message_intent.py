from datetime import UTC, datetime

import pytest

from services.knowledge.message_intent import MessageIntent, followed, manner_of, views_of
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
        ("How do I renew my card?", MessageIntent.SERVICE),
        ("renewal fee", MessageIntent.SERVICE),
        ("May I bring a guest on Sundays", MessageIntent.SERVICE),
        ("I'm so upset, my parcel is gone. Where do I complain?", MessageIntent.SERVICE),
        ("卡丢了怎么补", MessageIntent.SERVICE),
        ("補辦流程", MessageIntent.SERVICE),
        ("真的急死了，周日能不能带朋友进去", MessageIntent.SERVICE),
        ("The turnstile on the second floor does not open", MessageIntent.TROUBLE),
        ("门禁刷不了", MessageIntent.SERVICE),
        ("我的门禁卡刷了三次还是没反应，一直报错", MessageIntent.TROUBLE),
        ("Why is the sky blue?", MessageIntent.QUESTION),
        ("光合作用的原理是什么", MessageIntent.QUESTION),
        ("I went to the pool with my brother", MessageIntent.TOLD),
        ("我今天和朋友去游泳了，特别开心", MessageIntent.TOLD),
        ("Write a poem about a lost parcel", MessageIntent.ELSEWHERE),
        ("帮我写一封投诉信", MessageIntent.ELSEWHERE),
        ("Do you remember which card I have?", MessageIntent.ELSEWHERE),
        ("我上次说的会员号是多少来着", MessageIntent.ELSEWHERE),
    ],
)
def test_what_a_message_wants(message: str, manner: MessageIntent) -> None:
    assert manner_of(message) is manner


def test_the_clause_that_asks_is_looked_at_by_itself() -> None:
    message = "I am so tired today and everything hurts, how do I cancel the swimming course?"
    assert views_of(message, manner_of(message)) == [message, "how do I cancel the swimming course"]
