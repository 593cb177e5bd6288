"""Questions about days: answered from what is stored, in the user's own zone."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.visits.visit import SUMMARISE_DAYS
from tests.support.jobs import statuses
from tests.support.model_server import ModelServer, Reply
from tests.support.visits import import_lines, said

pytestmark = pytest.mark.indexed

SHANGHAI = ZoneInfo("Asia/Shanghai")
HEADINGS = ("The user asks about what was said", "The user refers to", "用户问的是", "用户提到的是")


def _days_ago(days: int, hour: int = 12, zone: ZoneInfo = SHANGHAI) -> datetime:
    return (datetime.now(zone) - timedelta(days=days)).replace(hour=hour, minute=0, second=0, microsecond=0)


async def _tell(services: Services, days: int, *facts: str, zone: str = "Asia/Shanghai", **values: Any) -> None:
    """Store an exchange of this many days ago."""
    begun = _days_ago(days, zone=ZoneInfo(zone))
    user = {"kind": "user", "user_id": values.get("user_id", "u-1"), "timezone": zone}
    lines = [
        line
        for number, fact in enumerate(facts)
        for line in (
            said(begun + timedelta(minutes=2 * number), fact, **values),
            said(begun + timedelta(minutes=2 * number + 1), "好的。", role="assistant", **values),
        )
    ]
    await import_lines(services, {**user, "created_at": begun.isoformat()}, *lines)


async def _ask(http: httpx.AsyncClient, message: str, session: str = "now", **more: Any) -> dict[str, Any]:
    body = {"user_id": "u-1", "session_id": session, "message": message, **more}
    answer = await http.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def _told(model_server: ModelServer) -> str:
    """What the newest prompt says about the days in question."""
    shown = [text for role, text in model_server.requests[-1].prompt if any(each in text for each in HEADINGS)]
    return shown[0] if shown else ""


async def test_a_day_without_a_summary_is_told_in_the_users_words_and_summarised_behind_the_answer(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    await _tell(services, 2, "我养了一只猫叫团子。", "它今年三岁。")
    model_server.script(Reply(["猫。"]))
    await _ask(client, "前天我们聊了什么？")
    assert len(model_server.requests) == 1
    assert "团子" in _told(model_server)
    assert await statuses(services.database, SUMMARISE_DAYS) == ["todo"]


_UNRECORDED = (
    ("前天我们聊了什么？", "没有聊过天"),
    ("上个月我们都聊了些什么呀", "没有聊过天"),
    ("What did we talk about yesterday?", "We didn't talk on"),
    ("What did we talk about last time?", "This is our first conversation"),
    ("上次我们聊到哪儿了？", "这是我们第一次聊天"),
)


async def test_of_a_day_without_a_record_the_answer_needs_no_model(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    for number, (message, answer) in enumerate(_UNRECORDED):
        told = await _ask(client, message, user_id=f"u-{number}")
        assert answer in told["answer"]
        assert model_server.requests == []
        assert told["usage"]["model_calls"] == 0
        messages = (await client.get(f"/api/v1/conversations/{told['conversation_id']}/messages")).json()["items"]
        assert [each["content"] for each in messages] == [message, told["answer"]]
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute("SELECT count(*) FROM episodes")).fetchone()
    assert row == (0,), "there is nothing to remember"


async def test_the_zone_of_the_request_goes_first(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    zone = "Pacific/Kiritimati"
    midnight = datetime.now(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    await import_lines(services, said(midnight - timedelta(minutes=40), "I like parsnips."))
    await _ask(client, "What did we talk about yesterday?", timezone=zone)
    assert "parsnips" in _told(model_server)


async def test_a_week_is_told_day_by_day_within_its_budget(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    today = datetime.now(SHANGHAI).date()
    monday = today - timedelta(days=today.weekday() + 7)
    for number in range(7):
        ago = (today - (monday + timedelta(days=number))).days
        await _tell(services, ago, *[f"第{number}日的第{n}件事，" + "说来话长" * 30 for n in range(20)])
    answer = await _ask(client, "上周我们聊了什么？", debug=True)
    told = _told(model_server)
    for number in range(7):
        assert f"{(monday + timedelta(days=number)).day}日" in told
        assert f"第{number}日的" in told
    assert answer["context_report"]["tokens"]["days"] <= 500 + 120, "the heading is beside it"


async def test_a_part_of_a_day_is_narrowed_to_its_hours(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    for hour, fact in ((8, "I repotted the fern."), (20, "I baked a plum cake.")):
        at = _days_ago(1, hour=hour)
        await import_lines(
            services,
            said(at, fact, session_id=f"h-{hour}"),
            said(at + timedelta(minutes=1), "Nice.", role="assistant", session_id=f"h-{hour}"),
        )
    await _ask(client, "What did we talk about yesterday evening?")
    told = _told(model_server).partition("For the user it is")[0]
    assert "plum cake" in told
    assert "fern" not in told
    await _ask(client, "What did we talk about yesterday afternoon?", session="other")
    told = _told(model_server)
    assert "Nothing was said in that part of the day" in told
    assert "plum cake" in told
    assert "fern" in told
