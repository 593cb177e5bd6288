"""What refers to past conversation, and what only has a time word in it."""

import json
import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ("昨天說到哪了", day(19), day(19), "昨天"),
        ("我們前天聊了什麼", day(18), day(18), "前天"),
        ("上週三你推薦給我的書叫什麼來著", day(13), day(13), "上週三"),
        ("上周三你给我推荐的那本书叫什么？", day(13), day(13), "上周三"),
        ("5月2号我们讨论了啥", day(2), day(2), "5月2号"),
        ("帮我回顾一下上周的聊天", day(11), day(17), "上周"),
        ("昨天和前天我们都聊了什么", day(18), day(19), "昨天和前天"),
        ("上周一到上周三我们聊了什么", day(11), day(13), "上周一到上周三"),
        ("这周我们都聊过什么", day(18), day(20), "这周"),
        ("昨天我去爬山了，前天我们聊了什么", day(18), day(18), "前天"),
        ("我记得昨天跟你说过我的计划，是什么来着", day(19), day(19), "昨天"),
        ("what did we talk about yesterday", day(19), day(19), "yesterday"),
        ("Remind me what I told you last Friday.", day(15), day(15), "last Friday"),
        ("can you summarise our chats from last week", day(11), day(17), "last week"),
        ("do you remember what I said on May 3rd?", day(3), day(3), "May 3rd"),
        ("Yesterday was awful. What did I tell you two days ago?", day(18), day(18), "two days ago"),
        ("what did we discuss yesterday and the day before yesterday", day(18), day(19), None),
        ("3 days ago I told you about a dream. What was it?", day(17), day(17), "3 days ago"),
        ("What’s the name of the book you’d recommended yesterday", day(19), day(19), "yesterday"),
        ("你还记得我前天说了什么吗", day(18), day(18), "前天"),
        ("上周我们聊过一本书。叫什么来着？", day(11), day(17), "上周"),
        ("昨天的聊天", day(19), day(19), "昨天"),
        ("recap一下昨天的chat", day(19), day(19), "昨天"),
        ("上周我的情绪怎么样，都跟你说了些什么", day(11), day(17), "上周"),
        ("yesterday's chat", day(19), day(19), "yesterday"),
        ("Last Monday. What did we talk about?", day(18), day(18), "Last Monday"),
        ("What did we talk about? I mean yesterday.", day(19), day(19), "yesterday"),
        ("what did you say I should avoid yesterday", day(19), day(19), "yesterday"),
        ("You asked me something yesterday. I never answered. Ask me again.", day(19), day(19), "yesterday"),
        ("How did you cheer me up when I was feeling low yesterday?", day(19), day(19), "yesterday"),
        ("ＷＨＡＴ ｄｉｄ ｗｅ ｔａｌｋ ａｂｏｕｔ ｙｅｓｔｅｒｄａｙ？", day(19), day(19), None),
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
        "上周一我们商量的课程安排帮我排成表",
        "The recipe you gave me last week came out perfectly.",
        "I told you yesterday that I don't eat pork, so what can I cook?",
        "We talked through my essay last week; can you tighten the opening?",
        "We discussed the move last month. Write to the removal firm for me.",
    ],
)
def test_a_reference_in_passing_counts_whatever_is_asked(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert not found["plain"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("上次我们聊到哪里了", "last_visit"),
        ("上次的对话帮我总结一下", "last_visit"),
        ("what did we talk about last time", "last_visit"),
        ("Can you recap our previous conversation?", "last_visit"),
        ("刚才你说了什么", "just_now"),
        ("what did you just tell me", "just_now"),
        ("What were we just talking about?", "just_now"),
        ("when did we last talk", "last_visit"),
        ("last time我们聊到哪里了", "last_visit"),
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
        *("", " \n", "?", "昨天", "yesterday", "我们聊了什么", "what did we talk about"),
        *("明天提醒我", "昨天的股价", "上周发布的手机怎么样", "昨天我跟老板聊了很久"),
        *(
            "昨天老板说了什么你觉得是什么意思",
            "下周提醒我我们讨论过的事",
            "明天我们聊什么",
            "今天我们聊点什么好呢",
        ),
        *("明天提醒我昨天我们聊了什么", "翻译成英文：我们昨天聊了什么"),
        *("“我们昨天聊了什么”是个问句", "如果昨天我告诉你我病了你会怎么说", "《昨日重现》是谁唱的"),
        *("what was the weather yesterday", "I went to Paris last week", "remind me next week what we discussed"),
        *("remind me tomorrow what we discussed yesterday", "how long did you say a battery will last"),
        *("who wrote Yesterday?", "My landlord said yesterday that we should talk about the deposit."),
        *(
            "translate into French: what did we talk about yesterday?",
            "what did we discuss with the lawyer yesterday",
        ),
        *("what would you like to talk about today", "what did you do yesterday"),
        *("Can we talk about the election last Tuesday?", "what did you say I should do today"),
        *("How do I recover my WhatsApp chats from yesterday?", "上周我们讨论课上讲的那个定理怎么证明"),
        *("请问你今天过得如何？有什么想和我分享的吗？", "昨天我去爬山了，你说我该怎么恢复"),
        *("did I tell you where I went yesterday", "```\nwhat did we talk about yesterday\n```"),
    ],
)
def test_what_refers_to_nothing(message: str) -> None:
    assert detect(message, ZONE, NOW) is None


@pytest.mark.parametrize(
    "message",
    [
        "昨天我们聊了什么",
        "你好！前天我们聊了什么？谢谢",
        "请问上周三咱们都谈了些什么呢？",
        "你还记得上个月我们聊过哪些话题吗",
        "昨天的聊天记录",
        "早上好，昨天聊到哪儿了？",
        "昨天我們聊了什麼，我忘了",
        "上次我们聊了什么？",
        "what did we talk about on Tuesday?",
        "Hey there! What did we discuss yesterday? Thanks a lot",
        "Sorry to bother you but what did we talk about yesterday?",
        "Can you tell me what we chatted about last week, please?",
        "On Monday, what did we talk about?",
        "Did we talk last Friday?",
        "Summarize our conversation from yesterday",
        "What did you and I discuss on May 3rd?",
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
        "昨天你推荐的书叫什么？再推荐一本类似的",
        "把昨天我们讨论的大纲写成一封邮件",
        "昨天我们聊了什么，然后帮我订个闹钟",
        "昨天我们聊的租房合同，有哪几条要改？",
        "前天你教我的那道菜，再讲一遍做法",
        "上周一我们商量的课程安排帮我排成表",
        "昨天我们谈的租金是多少",
        "上週你說的那間診所在哪裡",
        "what did we discuss yesterday, and what's the weather in Rome?",
        "Turn what we discussed yesterday into an email.",
        "Turn off the lights. What did we talk about yesterday?",
        "what did we talk about yesterday, then tell me a joke",
        "What did we discuss yesterday with the plumber?",
        "What did we say on Monday about the deposit?",
        "We talked through my essay last week; can you tighten the opening?",
        "Remind me which seeds you recommended last Friday.",
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
        ("把昨天你给我的建议原话再说一遍", True),
        ("what exactly did you say yesterday", True),
        ("which topics did we discuss yesterday", False),
        ("What was the restaurant I mentioned yesterday?", True),
        ("which book did you suggest yesterday", True),
        ("what was the name of the place you suggested yesterday", True),
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
        ("上週三下午你推薦的茶館叫什麼", (12, 19)),
        ("what did we talk about this morning?", (4, 13)),
        ("What did I tell you yesterday evening?", (16, 28)),
        ("On Monday night you told me a story", (17, 28)),
        ("what did we talk about yesterday?", None),
        ("上周我们聊了什么", None),
    ],
)
def test_a_part_of_a_day_has_its_hours(message: str, hours: tuple[int, int] | None) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert found["hours"] == hours


@pytest.mark.parametrize(
    "message",
    [
        "最近我们聊了些什么",
        "这阵子我都跟你抱怨过什么",
        "近来你给我推荐过的播客有哪些",
        "What have we been talking about lately?",
        "Have you recommended any podcasts to me recently?",
    ],
)
def test_lately_is_the_last_two_weeks(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["end_date"]) == ("days", day(7), day(20))


@pytest.mark.parametrize(
    "message",
    [
        "你之前推荐的那家牙科叫什么",
        "我以前跟你提过的那个同学结婚了",
        "What was the name of the book you recommended before?",
        "We talked about my thesis back then, do you still have the outline?",
    ],
)
def test_the_past_without_a_date_narrows_nothing(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is not None
    assert (found["kind"], found["start_date"], found["plain"]) == ("past", None, False)


@pytest.mark.parametrize(
    "message",
    [
        *("最近有什么好看的电影你推荐一下", "最近好累", "以前我在北京工作", "吃饭之前要洗手吗"),
        *(
            "I've been so tired lately",
            "I lived in Rome before",
            "Wash your hands before dinner",
            "once upon a time",
        ),
    ],
)
def test_such_words_alone_refer_to_nothing(message: str) -> None:
    assert detect(message, ZONE, NOW) is None


@pytest.mark.parametrize(
    "message",
    [
        "三天前给猫起的名字叫什么来着",
        "接着昨天的故事往下讲",
        "What name did we pick three days ago?",
        "Continue the story you started yesterday.",
    ],
)
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


ENGLISH = (
    "yesterday we you i did talked told me about last week what time tomorrow next just now earlier and on May 3rd"
)
CHINESE = "昨天 明天 我们 你 我 聊 说 了 的 跟你 什么 上次 刚才 下周 5月2号 和 到 吗 你还记得 总结 12月31日"
WORDS = [*ENGLISH.split(), *CHINESE.split(), *", . ? : ` “ ”", "\n"]
messages = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=60).map("".join),
)


@given(
    message=messages,
    zone=st.sampled_from([ZONE, "America/New_York", "+14:00", "-12:00"]),
    now=st.datetimes(datetime(1999, 1, 1), datetime(2100, 1, 1)),
)
def test_no_text_is_too_strange_and_no_day_is_ahead(message: str, zone: str, now: datetime) -> None:
    begun = time.thread_time()
    found = detect(message, zone, now.replace(tzinfo=UTC))
    assert time.thread_time() - begun < 1
    if found is None:
        return
    assert found["matched_text"] in message
    assert json.dumps(found, default=str)
    if found["kind"] == "days":
        assert found["start_date"] is not None
        assert found["end_date"] is not None
        assert found["start_date"] <= found["end_date"] <= (now + timedelta(hours=14)).date()
    else:
        assert found["start_date"] is found["end_date"] is None


@pytest.mark.parametrize(
    "message",
    [
        "Do you remember my birthday is 3 May?",
        "please remember my birthday is 3 May",
        "Tom's birthday is 2 March, what did I say he likes?",
        "Tom was born on 2 March, what did we say about his present?",
        "Our anniversary was on 3 May. What did we talk about?",
        "你记得吗，我的生日是5月3号",
        "我们聊过小雨的事，她生日3月8号，我说过送什么？",
        "3月8号是小雨的生日，之前我跟你说她想要什么？",
    ],
)
def test_a_birthday_is_no_day_of_talk(message: str) -> None:
    found = detect(message, ZONE, NOW)
    assert found is None or found["kind"] == "past"


@pytest.mark.parametrize(
    "message",
    ["What did we talk about on my birthday, 3 May?", "What did we talk about on 3 May, my birthday?"],
)
def test_a_birthday_may_be_a_day_of_talk(message: str) -> None:
    assert detect(message, ZONE, NOW) is not None
