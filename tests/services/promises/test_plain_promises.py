"""What is promised without a model: sentences that ask for it word for word, and nothing else."""

from datetime import datetime
from zoneinfo import ZoneInfo

import httpx
import pytest

from services.promises.plain_forms import plain_promise
from services.time_reference.occasions import BadOccasion, next_moment, read_occasion
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
            "every other day",
            "每隔一天",
        ),
        *("every Monday until March", "tomorrow at 25:00", "February 30", "soon", "", "从明天起", "every hour"),
    ],
)
def test_what_cannot_be_read_or_is_past_is_refused(said: str) -> None:
    with pytest.raises(BadOccasion):
        read_occasion(said, _NOW, _ZONE)


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
