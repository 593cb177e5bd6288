"""What is promised without a model: sentences that ask for it word for word, and nothing else."""

from datetime import datetime
from zoneinfo import ZoneInfo

import httpx
import pytest

from services.promises.plain_forms import plain_promise
from services.time_reference.occasions import next_moment, read_occasion
from services.time_reference.recurring import BadOccasion
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.talking import say

_ZONE = "Europe/Berlin"
_NOW = datetime(2026, 11, 29, 10, 20, tzinfo=ZoneInfo(_ZONE))  # a Sunday


def _local(moment: datetime | None) -> str:
    return f"{moment.astimezone(ZoneInfo(_ZONE)):%Y-%m-%d %H:%M}" if moment else ""


@pytest.mark.parametrize(
    ("said", "first", "following"),
    [
        ("tomorrow at nine", "2026-11-30 09:00", ""),
        ("in half an hour", "2026-11-29 10:50", ""),
        ("at three", "2026-11-29 15:00", ""),
        ("Sunday at 9", "2026-11-29 21:00", ""),
        ("Sunday at 9am", "2026-12-06 09:00", ""),
        ("December 24 at half past eight in the evening", "2026-12-24 20:30", ""),
        ("the day after tomorrow at quarter to six", "2026-12-01 17:45", ""),
        ("2026-12-24T09:00:00+08:00", "2026-12-24 02:00", ""),
        ("every Monday and Thursday at 18:30", "2026-11-30 18:30", "2026-12-03 18:30"),
        ("every weekday at 8:15", "2026-11-30 08:15", "2026-12-01 08:15"),
        ("tomorrow at six pm", "2026-11-30 18:00", ""),
        ("每天 8 点半", "2026-11-30 08:30", "2026-12-01 08:30"),
        ("every month on the 31st", "2026-12-31 09:00", "2027-01-31 09:00"),
        ("明早九点", "2026-11-30 09:00", ""),
        ("後天下午三點一刻", "2026-12-01 15:15", ""),
        ("两个半小时后", "2026-11-29 12:50", ""),
        ("除夕晚上八点", "2027-02-05 20:00", ""),
        ("每年中秋节", "2027-09-15 09:00", "2028-10-03 09:00"),
        ("每晚十点", "2026-11-29 22:00", "2026-11-30 22:00"),
        # times of day as people write them
        ("tomorrow at half eight", "2026-11-30 08:30", ""),
        ("tomorrow at 0645", "2026-11-30 06:45", ""),
        ("at 15h30", "2026-11-29 15:30", ""),
        ("at ten to four", "2026-11-29 15:50", ""),
        ("every Friday at 4:30pm", "2026-12-04 16:30", "2026-12-11 16:30"),
        ("Mon-Fri 6.45 in the morning", "2026-11-30 06:45", "2026-12-01 06:45"),
        ("in an hour and a half", "2026-11-29 11:50", ""),
        ("in a couple of hours", "2026-11-29 12:20", ""),
        ("八点零五", "2026-11-29 20:05", ""),
        ("半夜十二点", "2026-11-30 00:00", ""),
        ("两个半钟后", "2026-11-29 12:50", ""),
        ("差一刻五点", "2026-11-29 16:45", ""),
        ("下午三點三", "2026-11-29 15:15", ""),
        ("1月18号上午10:30", "2027-01-18 10:30", ""),
        ("周六早八", "2026-12-05 08:00", ""),
        ("聽日朝早九點", "2026-11-30 09:00", ""),
        ("this morning", "2026-11-29 11:00", ""),
        # days
        ("on 3 may at 8:00", "2027-05-03 08:00", ""),
        ("a week on Thursday", "2026-12-10 09:00", ""),
        ("Thurs nxt week 2pm", "2026-12-03 14:00", ""),
        ("Christmas Eve at noon", "2026-12-24 12:00", ""),
        ("Good Friday", "2027-03-26 09:00", ""),
        ("冬至", "2026-12-22 09:00", ""),
        ("清明节早上六点", "2027-04-05 06:00", ""),
        ("at the end of the month", "2026-11-30 09:00", ""),
        ("年底", "2026-12-31 09:00", ""),
        ("除夕前一天", "2027-02-04 09:00", ""),
        ("七夕晚上七点，提前两个小时", "2027-08-08 17:00", ""),
        ("half an hour before noon", "2026-11-29 11:30", ""),
        # of another place
        ("3pm New York time", "2026-11-29 21:00", ""),
        ("北京时间今晚十点", "2026-11-29 15:00", ""),
        # by a count, from a day on, within a month
        ("every other day at 8am, starting Tuesday", "2026-12-01 08:00", "2026-12-03 08:00"),
        ("every two weeks on Monday", "2026-11-30 09:00", "2026-12-14 09:00"),
        ("on weekends at ten", "2026-12-05 10:00", "2026-12-06 10:00"),
        ("每隔一周周五", "2026-12-04 09:00", "2026-12-18 09:00"),
        ("每三天", "2026-11-30 09:00", "2026-12-03 09:00"),
        ("从下周一开始，工作日早上八点半", "2026-11-30 08:30", "2026-12-01 08:30"),
        ("every first Monday of the month at ten", "2026-12-07 10:00", "2027-01-04 10:00"),
        ("on the 1st of every month", "2026-12-01 09:00", "2027-01-01 09:00"),
        ("每月最后一天", "2026-11-30 09:00", "2026-12-31 09:00"),
        ("每周三、五晚上七点", "2026-12-02 19:00", "2026-12-04 19:00"),
    ],
)
def test_a_moment_is_read_and_what_recurs_is_read_again(said: str, first: str, following: str) -> None:
    found = read_occasion(said, _NOW, _ZONE)
    assert _local(found.at) == first
    assert _local(next_moment(found.rule, found.at, _ZONE) if found.rule else None) == following


@pytest.mark.parametrize(
    "said",
    [
        *(
            "yesterday",
            "last Monday",
            "today at 6am",
            "昨天",
            "after the exam",
            "考试以后",
            "every two hours",
            "每隔一小时",
            "at nine tomorrow and on Friday",
            "Mother's Day",
            "北方小年",
            "from nine to ten tomorrow",
            "every morning and evening",
            "两周后的周五",
            "每隔三天",
        ),
        *("every Monday until March", "tomorrow at 25:00", "February 30", "soon", "", "从明天起", "every hour"),
    ],
)
def test_what_cannot_be_read_or_is_past_is_refused(said: str) -> None:
    with pytest.raises(BadOccasion):
        read_occasion(said, _NOW, _ZONE)


def test_a_feast_of_one_country_is_read_by_its_clock() -> None:
    found = read_occasion("every Thanksgiving", _NOW, "America/Chicago")
    assert (found.at.day, found.at.year) == (25, 2027)
    with pytest.raises(BadOccasion, match="give the day"):
        read_occasion("every Thanksgiving", _NOW, _ZONE)


def test_an_error_quotes_the_words_that_cannot_be_read() -> None:
    for said, words in (("tomorrow, After the  Exam", "after the exam"), ("考试以后", "考试以后")):
        with pytest.raises(BadOccasion, match=f"cannot be read: “{words}”"):
            read_occasion(said, _NOW, _ZONE)


@pytest.mark.parametrize(
    ("message", "text", "at"),
    [
        ("Remind me tomorrow at nine to call the dentist.", "call the dentist", "2026-11-30 09:00"),
        ("Please remind me to call mom tomorrow at 9am", "call mom", "2026-11-30 09:00"),
        ("Can you remind me to buy milk in two hours?", "buy milk", "2026-11-29 12:20"),
        ("I'm busy now. Tomorrow at nine, remind me to stretch", "stretch", "2026-11-30 09:00"),
        ("Ask me on Tuesday how the interview went", "how the interview went", "2026-12-01 09:00"),
        ("明早九点提醒我给妈妈打电话", "给妈妈打电话", "2026-11-30 09:00"),
        ("每周一提醒我交周报", "交周报", "2026-11-30 09:00"),
        ("你能提醒我明天早上7点起床吗？", "起床吗", "2026-11-30 07:00"),
        ("記得明早九點提醒我開會", "開會", "2026-11-30 09:00"),
        ("周二问我面试怎么样", "面试怎么样", "2026-12-01 09:00"),
        ("Pls remind me at ten to four to pick up Mateo", "pick up Mateo", "2026-11-29 15:50"),
        ("Remind me to meet Joe for lunch tomorrow", "meet Joe for lunch", "2026-11-30 09:00"),
        ("ask me saturday morning did i order it", "did i order it", "2026-12-05 09:00"),
        ("三點三提我落樓攞外賣", "落樓攞外賣", "2026-11-29 15:15"),
    ],
)
def test_a_listed_form_is_taken_at_its_word(message: str, text: str, at: str) -> None:
    found = plain_promise(message, _NOW, _ZONE)
    assert found is not None
    assert (found.text, _local(found.at)) == (text, at)


@pytest.mark.parametrize(
    "message",
    [
        *(
            "Can you remind me about the meeting tomorrow?",
            "Remind me about tomorrow's meeting at ten am",
            "Remind me to meet Joe at six tomorrow at the latest",
            "Remind me what we did yesterday",
            "Remind me to be nice",
            "Remind me about my schedule for the afternoon",
        ),
        *("She said: “remind me tomorrow at nine to call”", "That reminds me of tomorrow", "remind me tomorrow"),
        *("He asked me tomorrow to remind me", "If it rains tomorrow remind me to take an umbrella"),
        *(
            "老师昨天问我作业",
            "明天老师会提醒我交作业",
            "提醒我买牛奶",
            "他说：“明早九点提醒我开会”",
            "昨天九点提醒我开会",
        ),
    ],
)
def test_nothing_else_is(message: str) -> None:
    assert plain_promise(message, _NOW, _ZONE) is None


@pytest.mark.anyio
async def test_a_model_that_does_not_promise_it_itself_does_not_lose_it(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.script(Reply(tool_calls=[ToolCall("promise", {})]), Reply(["Sure."]))
    answer = await say(client, "Remind me tomorrow at nine to call the dentist.", timezone=_ZONE)
    [change] = answer["memory_changes"]
    [made] = (await client.get("/api/v1/users/u-1/promises")).json()["items"]
    assert (made["text"], made["conversation_id"], made["state"]) == (
        "call the dentist",
        answer["conversation_id"],
        "open",
    )
    assert change["summary"] == f"Promised: {made['when'][:10]} 09:00 call the dentist."
    undo = f"/api/v1/users/u-1/memory-operations/{change['operation_id']}/undo"
    (await client.post(undo)).raise_for_status()
    assert (await client.get("/api/v1/users/u-1/promises")).json()["items"] == []


@pytest.mark.anyio
async def test_several_are_promised_in_one_turn(client: httpx.AsyncClient, model_server: ModelServer) -> None:
    """What the tool answers to one is no text of others, on which the next would rest."""
    whens = ("every day at 8 in the morning", "every day at 8 at night")
    calls = [ToolCall("promise", {"text": "take the antibiotics", "when": each}, each) for each in whens]
    model_server.script(*(Reply(tool_calls=[each]) for each in calls), Reply(["All right."]))
    await say(client, "Yes! 8 in the morning and 8 at night would be great.", timezone=_ZONE)
    made = (await client.get("/api/v1/users/u-1/promises")).json()["items"]
    assert sorted(each["said"] for each in made) == sorted(whens)
