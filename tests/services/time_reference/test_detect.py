"""What refers to past conversation, and what only has a time word in it."""

from datetime import UTC, date, datetime

import pytest

from services.time_reference.detect import detect
from services.time_reference.local_days import BadTimeZone

NOW = datetime(2026, 5, 20, 6, 0, tzinfo=UTC)  # Wednesday, 14:00 in Shanghai
ZONE = "Asia/Shanghai"


def day(number: int, month: int = 5) -> date:
    return date(2026, month, number)


@pytest.mark.parametrize(
    ("message", "start", "end", "matched"),
    [
        ("前天我们聊了什么", day(18), day(18), "前天"),
        ("上週三你推薦給我的書叫什麼來著", day(13), day(13), "上週三"),
        ("5月2号我们讨论了啥", day(2), day(2), "5月2号"),
        ("帮我回顾一下上周的聊天", day(11), day(17), "上周"),
        ("昨天和前天我们都聊了什么", day(18), day(19), "昨天和前天"),
        ("昨天我去爬山了，前天我们聊了什么", day(18), day(18), "前天"),
        ("what did we talk about yesterday", day(19), day(19), "yesterday"),
        ("Remind me what I told you last Friday.", day(15), day(15), "last Friday"),
        ("do you remember what I said on May 3rd?", day(3), day(3), "May 3rd"),
        ("3 days ago I told you about a dream. What was it?", day(17), day(17), "3 days ago"),
        ("上周我们聊过一本书。叫什么来着？", day(11), day(17), "上周"),
        ("昨天的聊天", day(19), day(19), "昨天"),
        ("Last Monday. What did we talk about?", day(18), day(18), "Last Monday"),
        ("What did we talk about? I mean yesterday.", day(19), day(19), "yesterday"),
        ("what did you say I should avoid yesterday", day(19), day(19), "yesterday"),
        ("你好。昨天早上。你推荐的店叫什么？", day(19), day(19), "昨天早上"),
        ("昨天。What did we talk about?", day(19), day(19), "昨天"),
        ("琴日我哋傾咗啲乜嘢？", day(19), day(19), "琴日"),
        ("尋晚我哋傾過咩", day(19), day(19), "尋晚"),
    ],
)
def test_days_that_are_asked_about(message: str, start: date, end: date, matched: str | None) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["end_date"]) == ("days", start, end)
    assert matched is None or found["matched_text"] == matched
    assert found["matched_text"] in message


@pytest.mark.parametrize(
    "message",
    [
        "昨天你推荐的书我看完了，真不错",
        "The recipe you gave me last week came out perfectly.",
        "I told you yesterday that I don't eat pork, so what can I cook?",
    ],
)
def test_a_reference_in_passing_counts_whatever_is_asked(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert not found["plain"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("上次的对话帮我总结一下", "last_visit"),
        ("what did we talk about last time", "last_visit"),
        ("刚才你说了什么", "just_now"),
        ("What were we just talking about?", "just_now"),
        ("what was the number you gave me earlier in this chat", "just_now"),
    ],
)
def test_times_without_a_date(message: str, kind: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["end_date"]) == (kind, None, None)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "昨天",
        "我们聊了什么",
        "昨天的股价",
        "昨天我跟老板聊了很久",
        "明天我们聊什么",
        "明天提醒我昨天我们聊了什么",
        "翻译成英文：我们昨天聊了什么",
        "“我们昨天聊了什么”是个问句",
        "what was the weather yesterday",
        "remind me tomorrow what we discussed yesterday",
        "who wrote Yesterday?",
        "My landlord said yesterday that we should talk about the deposit.",
        "what did we discuss with the lawyer yesterday",
        "what would you like to talk about today",
        "what did you say I should do today",
        "How do I recover my WhatsApp chats from yesterday?",
        "昨天我去爬山了，你说我该怎么恢复",
        "```\nwhat did we talk about yesterday\n```",
    ],
)
def test_what_refers_to_nothing(message: str) -> None:
    assert detect(message, ZONE, NOW) is None


@pytest.mark.parametrize(
    "message",
    [
        "昨天我们聊了什么",
        "你好！前天我们聊了什么？谢谢",
        "昨天的聊天记录",
        "上次我们聊了什么？",
        "Hey there! What did we discuss yesterday? Thanks a lot",
        "On Monday, what did we talk about?",
        "Summarize our conversation from yesterday",
    ],
)
def test_a_plain_question_about_a_time(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert found["plain"]


@pytest.mark.parametrize(
    "message",
    [
        "前天我们聊了什么，今天北京天气怎样？",
        "把昨天我们讨论的大纲写成一封邮件",
        "昨天我们聊了什么，然后帮我订个闹钟",
        "前天你教我的那道菜，再讲一遍做法",
        "昨天我们谈的租金是多少",
        "what did we discuss yesterday, and what's the weather in Rome?",
        "Turn what we discussed yesterday into an email.",
        "what did we talk about yesterday, then tell me a joke",
        "What did we discuss yesterday with the plumber?",
        "What did we decide yesterday?",
    ],
)
def test_what_asks_for_more_is_not_plain(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert not found["plain"]


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ("昨天你说的那家店叫什么", True),
        ("昨天我们聊了什么", False),
        ("what exactly did you say yesterday", True),
        ("which topics did we discuss yesterday", False),
        ("which book did you suggest yesterday", True),
    ],
)
def test_whether_it_asks_for_a_detail(message: str, detail: bool) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert found["detail"] is detail


@pytest.mark.parametrize(
    ("message", "hours"),
    [
        ("今天上午我们聊了什么", (6, 13)),
        ("昨晚我跟你说的那个梦", (17, 28)),
        ("what did we talk about this morning?", (4, 13)),
        ("On Monday night you told me a story", (17, 28)),
        ("what did we talk about yesterday?", None),
    ],
)
def test_a_part_of_a_day_has_its_hours(message: str, hours: tuple[int, int] | None) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert found["hours"] == hours


@pytest.mark.parametrize("message", ["最近我们聊了些什么", "Have you recommended any podcasts to me recently?"])
def test_lately_is_the_last_two_weeks(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["end_date"]) == ("days", day(7), day(20))


@pytest.mark.parametrize(
    "message", ["你之前推荐的那家牙科叫什么", "What was the name of the book you recommended before?"]
)
def test_the_past_without_a_date_narrows_nothing(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["plain"]) == ("past", None, False)


@pytest.mark.parametrize("message", ["三天前给猫起的名字叫什么来着", "Continue the story you started yesterday."])
def test_a_reference_may_be_part_of_what_is_asked(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["plain"]) == ("days", False)


def test_the_days_are_the_users() -> None:
    late = datetime(2026, 5, 20, 17, 0, tzinfo=UTC)  # the 21st in Shanghai, the 20th in New York
    days = [
        detect("what did we talk about yesterday", zone, late) for zone in (ZONE, "America/New_York", "+05:45")
    ]
    assert [found and found["start_date"] for found in days] == [day(20), day(19), day(19)]
    with pytest.raises(BadTimeZone):
        detect("what did we talk about yesterday", "Mars/Olympus", late)


LONG = "The committee met again and wrote down what everybody wanted. "
LONG_CHINESE = "委员会又开了一次会，把大家的想法都写了下来。"


@pytest.mark.parametrize("filler", [LONG, LONG_CHINESE])
def test_of_a_long_message_the_beginning_and_the_end_count(filler: str) -> None:
    asking = "What did we talk about yesterday?"
    text = (filler * 2000)[:30_000]
    for message in (f"{asking}\n{text}", f"{text}\n{asking}"):
        found = detect(message, ZONE, NOW)
        assert found is not None
        assert found["matched_text"] == "yesterday"
    assert detect(text[:15_000] + asking + text[:15_000], ZONE, NOW) is None
    assert detect("昨" * 32_000, ZONE, NOW) is None


@pytest.mark.parametrize(
    "message",
    [
        "Do you remember my birthday is 3 May?",
        "Tom's birthday is 2 March, what did I say he likes?",
        "你记得吗，我的生日是5月3号",
        "3月8号是小雨的生日，之前我跟你说她想要什么？",
    ],
)
def test_a_birthday_is_no_day_of_talk(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is None or found["kind"] == "past"


@pytest.mark.parametrize(
    "message", ["What did we talk about on my birthday, 3 May?", "What did we talk about on 3 May, my birthday?"]
)
def test_a_birthday_may_be_a_day_of_talk(message: str) -> None:
    assert detect(message, ZONE, NOW) is not None
