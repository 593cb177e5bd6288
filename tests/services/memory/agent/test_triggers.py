"""Which exchanges the memory agent looks at: nearly all that say something about the user, and few others."""

import time

import pytest

from services.memory.agent.triggers import is_worth_filing
from tests.services.memory import said

_ENGLISH = (*said.ENGLISH, *said.MORE_ENGLISH, *said.THIRD_ENGLISH)
_CHINESE = (*said.CHINESE, *said.MORE_CHINESE, *said.THIRD_CHINESE)


@pytest.mark.parametrize("sentences", [pytest.param(_ENGLISH, id="English"), pytest.param(_CHINESE, id="Chinese")])
def test_it_passes_what_is_worth_remembering_and_little_else(sentences: tuple[tuple[str, str], ...]) -> None:
    passed = {text: is_worth_filing(text, "") for text, _ in sentences}
    wanted = {text: bool(signal) for text, signal in sentences}
    right = sum(passed[text] and wanted[text] for text in wanted)
    assert len(sentences) >= 60
    assert 0.4 <= sum(wanted.values()) / len(wanted) <= 0.6
    assert right / sum(passed.values()) >= 0.85
    assert right / sum(wanted.values()) >= 0.95


@pytest.mark.parametrize("sentences", [said.HARD_ENGLISH, said.HARD_CHINESE])
def test_what_is_made_to_mislead_it_may_pass_but_what_says_something_is_not_lost(
    sentences: tuple[tuple[str, str], ...],
) -> None:
    wanted = [text for text, signal in sentences if signal]
    assert sum(is_worth_filing(text, "") for text in wanted) / len(wanted) >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, I meant nine.",
        "No wait, the flight leaves on Thursday, not Friday.",
        "Actually he is ten.",
        "That's wrong, she studies physics.",
        "From now on, answer in Italian.",
        "Keep your answers short from now on.",
        "Never use emojis when you write back.",
        "Please forget what I told you about my divorce.",
        "My mother is having surgery next week.",
        "Our lease ends in March.",
        "不对，是下周五。",
        "说错了，她今年读初二",
        "我的意思是周四不是周五",
        "以后回答我简短一点",
        "今后都用英文",
        "别再叫我先生了",
        "我妈下周要做手术",
        "刚才记错了，是三百块",
        "把我离婚的事忘掉",
        "我老婆怀孕了",
    ],
)
def test_corrections_wishes_and_news_of_people_pass(text: str) -> None:
    assert is_worth_filing(text, "")


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Thanks, that helps.",
        "What is the capital of Peru?",
        "Translate this into German: I am tired.",
        "Write a poem about the sea.",
        "Explain how vaccines work.",
        "Can you sort this list by date?",
        "Convert 30 miles to kilometres.",
        "你好",
        "谢谢，辛苦了",
        "秘鲁的首都是哪里？",
        "帮我写一封请假邮件",
        "解释一下什么是通货膨胀",
        "把这段话翻译成英文：我很累",
        "一公里等于多少英里",
    ],
)
def test_tasks_greetings_and_questions_about_the_world_do_not_pass(text: str) -> None:
    assert not is_worth_filing(text, "")


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("I've booked the table for eight.", True),
        ("Your order has been placed.", True),
        ("已为您预订明晚七点的位子。", True),
        ("I like comedies too, and you live in Lisbon.", False),
        ("你喜欢喜剧，住在里斯本。", False),
    ],
)
def test_of_the_answer_only_what_came_of_it_counts(answer: str, passes: bool) -> None:
    assert is_worth_filing("Yes, please.", answer) is passes


@pytest.mark.parametrize(
    "message",
    [
        "",
        "   ",
        "\x00",
        "i usually " * 300,
        "我不再" * 1000,
        "我还是" * 1000,
        "“" * 2000,
        "my really " * 400,
        "a" * 10**6,
    ],
)
def test_no_message_makes_it_slow(message: str) -> None:
    begun = time.process_time()
    is_worth_filing(message, message)
    assert time.process_time() - begun < 2  # not exponential
